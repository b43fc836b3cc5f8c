"""The operators' API: records of all owners, actions on them, and the socket of a running host."""
