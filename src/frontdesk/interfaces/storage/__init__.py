"""The interfaces of the state store, by subject."""
