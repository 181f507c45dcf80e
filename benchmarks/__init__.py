"""Command-line programs that print and save the figures which the README quotes."""
