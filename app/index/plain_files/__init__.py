"""Plain files (layout *tree*): write intents, and files of other programs."""
