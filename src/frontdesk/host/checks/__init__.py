"""Checks of the configuration at build."""
