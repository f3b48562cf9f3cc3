"""Encryption at rest, without I/O: chunked bodies, enveloped data keys, key ring, customers' keys.

All ciphers are those of the library `cryptography`. Only this room calls it.
"""
