"""Probes of what a mount can really do."""
