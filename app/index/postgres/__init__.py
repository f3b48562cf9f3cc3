"""The index in Postgres, for several gateways on one store.

README.md in this folder says why it is correct.
"""
