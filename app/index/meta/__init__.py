"""Meta values, and the commit sequence."""
