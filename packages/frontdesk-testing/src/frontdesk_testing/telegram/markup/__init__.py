"""Texts with entities: how the server parses, checks and finds them."""
