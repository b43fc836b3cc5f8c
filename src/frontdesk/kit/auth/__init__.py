"""Authenticate callers, and keep secrets out of logs."""
