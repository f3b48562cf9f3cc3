"""Inventories of buckets: what is wanted (`configuration`), what is listed (`rows`), who writes it (`delivery`)."""
