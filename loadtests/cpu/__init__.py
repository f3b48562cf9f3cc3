"""Measures S3 endpoints side by side with one light client: `python -m sluice_s3.loadtests.cpu run --help`."""
