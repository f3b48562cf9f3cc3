"""Stores and endpoints compared by the same scenarios: `sluice bench`, `make compare`."""
