"""Previews of objects that a browser cannot read itself."""
