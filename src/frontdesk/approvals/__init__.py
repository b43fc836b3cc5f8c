"""Tool calls that require approval."""
