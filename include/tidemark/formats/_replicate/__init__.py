"""Parts that Replicate's JSON and Avro formats share."""
