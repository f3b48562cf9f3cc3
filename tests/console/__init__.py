"""The console in a real browser, on a real gateway."""
