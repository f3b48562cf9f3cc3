"""What a mount can really do, found by trying it."""
