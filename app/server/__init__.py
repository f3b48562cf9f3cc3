"""The HTTP server and its processes."""
