"""Command-line programs that print and save the figures which docs/speed.md quotes."""
