"""Buckets as websites: configuration (`operations`, `xml`), and answers to requests (`serve`, `pages`)."""
