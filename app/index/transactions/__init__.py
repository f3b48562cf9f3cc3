"""What the index does, as generators without an engine (see `app.index.steps`)."""
