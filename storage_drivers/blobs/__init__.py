"""Large bodies, each a file with a footer of checks."""
