"""What Replicate's JSON and Avro messages share."""
