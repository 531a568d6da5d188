"""Parts that the formats with Debezium envelopes share."""
