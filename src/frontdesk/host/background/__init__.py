"""Runs in the background."""
