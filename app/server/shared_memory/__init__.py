"""State shared by the processes of a server."""
