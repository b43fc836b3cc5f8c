"""Runners of scheduled tasks: in one process, or on many machines."""
