"""The command `repair`."""
