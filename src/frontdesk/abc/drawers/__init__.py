"""The drawers of the store: what is read, and what a transaction writes, one subject a file."""
