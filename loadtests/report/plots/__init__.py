"""Plots as SVG from a few elements; the page's style sheet colours them."""
