"""Authentication and authorization of S3 requests."""
