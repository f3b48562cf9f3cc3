"""Plain files as objects: reads, changes, and rows that follow the files."""
