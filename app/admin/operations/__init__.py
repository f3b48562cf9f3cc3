"""The routes of the console's room Operations."""
