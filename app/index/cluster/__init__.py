"""The writers of one index: incarnations, heartbeats and leases."""
