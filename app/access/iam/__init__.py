"""The operations of IAM and STS on what an account has: users, groups, roles, keys and sessions. No HTTP and no XML.

Each is a function of a `Call`, registered under AWS's name with the parameters that it takes and the resource that its
right is asked on: see `table`. `service` has them all.
"""
