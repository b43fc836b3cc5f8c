"""How fast the host is, next to a bare Starlette app that sends the same bytes. Run `python -m bench`."""
