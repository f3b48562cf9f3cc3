"""Accounts, access keys, users, groups, roles and sessions."""
