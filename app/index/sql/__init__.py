"""Statements, the differences of the two dialects, and the generators that yield statements."""
