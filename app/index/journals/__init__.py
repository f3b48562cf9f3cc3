"""The state of the journals, and what they are written from."""
