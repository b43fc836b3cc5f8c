"""Routing and delivery of results."""
