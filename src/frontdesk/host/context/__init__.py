"""The context that a channel gets."""
