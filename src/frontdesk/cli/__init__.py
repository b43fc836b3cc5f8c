"""The `frontdesk` command."""

from frontdesk.cli.command import main

__all__ = ["main"]
