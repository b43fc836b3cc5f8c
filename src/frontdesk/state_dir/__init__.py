"""The state directory."""
