"""A demo host without an API key or network access: the Marmalade, a small hotel by the sea."""

from frontdesk.demo.host import Choice, build_host, choose_client

__all__ = ["Choice", "build_host", "choose_client"]
