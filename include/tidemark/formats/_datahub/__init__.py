"""What the two DataHub formats share."""
