"""Runners of scheduled tasks, for one process or many machines."""
