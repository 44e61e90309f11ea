"""The commands of the distributed extra."""
