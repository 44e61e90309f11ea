"""Format text, tables and small drawings for pages and notebooks."""
