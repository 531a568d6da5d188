"""What one value is: its type, its encoding, and the two readers of values, plain and Spark, which must agree."""
