"""Optional packages: each can be deleted, and the core finds those that are there through the registry."""
