"""Requests to other servers."""
