"""The launcher and its child processes."""
