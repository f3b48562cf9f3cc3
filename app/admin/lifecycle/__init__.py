"""A preview of what lifecycle rules would do."""
