"""Validation of the configuration when the host is built."""
