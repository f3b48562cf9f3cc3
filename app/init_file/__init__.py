"""The init file: accounts, users, groups, policies, keys and buckets that are to be there."""
