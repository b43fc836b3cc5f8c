"""Helpers for chat channels."""
