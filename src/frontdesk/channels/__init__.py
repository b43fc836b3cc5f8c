"""The built-in channels."""
