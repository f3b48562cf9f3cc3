"""Plots as SVG, drawn with a few elements and coloured by the page's style sheet."""
