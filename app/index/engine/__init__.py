"""Common parts of both engines: declarations, the commit queue, the registration of a writer."""
