"""What DTS Avro records are made of."""
