"""Object lock: protection of versions from removal."""
