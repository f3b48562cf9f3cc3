"""Inventories of buckets: configuration (`operations`, `xml`), rows (`rows`) and delivery (`delivery`)."""
