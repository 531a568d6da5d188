"""The parts of DTS Avro Records."""
