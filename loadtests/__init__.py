"""Load tests of the gateway and of the stores under it."""
