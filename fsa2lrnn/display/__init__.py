"""Format objects as text, HTML tables and small SVG drawings for web pages and notebooks."""
