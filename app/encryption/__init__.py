"""Encryption at rest, without I/O: bodies in chunks, data keys in envelopes, the key ring, and customers' keys.

All ciphers are those of the library `cryptography`. Nothing outside this room calls it.
"""
