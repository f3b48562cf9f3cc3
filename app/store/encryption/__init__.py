"""Encryption of bodies on their way to a store, and decryption on their way back."""
