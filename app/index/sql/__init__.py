"""Statements, what the two dialects call differently, and the generators that yield them."""
