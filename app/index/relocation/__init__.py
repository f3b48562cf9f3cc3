"""New places for bodies: transitions, and buckets that move to another store."""
