"""What one value is: types, encodings, and the two readers, plain and Spark's, that must agree."""
