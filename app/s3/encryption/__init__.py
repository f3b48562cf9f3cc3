"""Server-side encryption."""
