"""Measures S3 endpoints side by side with one light client: `python -m benchmarks run --help`."""
