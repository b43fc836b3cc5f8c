"""A host to try, with no key and no network: the Marmalade, a small hotel by the sea."""

from frontdesk.demo.host import build_host
from frontdesk.demo.models import Choice, choose_client

__all__ = ["Choice", "build_host", "choose_client"]
