"""The admin listener: metrics and the admin API."""
