"""Tool calls that wait for a human."""
