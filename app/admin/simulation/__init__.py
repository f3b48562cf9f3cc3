"""The policy simulator: whether a principal may do something, and by which statement."""
