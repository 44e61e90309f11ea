"""The command `learn`, and the display of what was learned."""
