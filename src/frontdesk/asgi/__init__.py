"""Plain ASGI requests and responses."""
