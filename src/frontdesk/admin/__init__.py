"""The operators' view: rows of every owner, actions on them, and the socket of a running host."""
