"""Implementations of the state store."""
