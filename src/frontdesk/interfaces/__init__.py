"""The interfaces between the host and its components."""
