"""Cross-origin resource sharing."""
