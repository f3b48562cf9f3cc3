"""Compares stores and endpoints by the same scenarios: `sluice bench`, `make compare`."""
