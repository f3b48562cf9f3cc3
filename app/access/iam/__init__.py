"""The operations of IAM and STS on an account's users, groups, roles, keys and sessions.

Each is a function of a `Call`, registered under AWS's name with its parameters and the resource of its permission: see
`actions`. `service` has them all. No HTTP and no XML.
"""
