"""Code shared by load tests and CPU measurements."""
