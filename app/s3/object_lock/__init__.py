"""Object Lock: retention and legal holds."""
