"""Accounts, principals and their rights."""
