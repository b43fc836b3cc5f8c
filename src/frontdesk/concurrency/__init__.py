"""Tasks, timeouts and threads."""
