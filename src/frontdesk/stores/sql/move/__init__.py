"""Copies all state from one database to another."""
