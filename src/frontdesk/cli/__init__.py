"""The `frontdesk` command."""


def main() -> None:
    """Runs the command line."""
