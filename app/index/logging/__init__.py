"""Lines of access logs that wait to become objects."""
