"""What the formats that carry Debezium envelopes share."""
