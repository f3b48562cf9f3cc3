"""Background jobs of the workers."""
