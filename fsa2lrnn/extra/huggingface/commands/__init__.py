"""The commands of the Hugging Face extra."""
