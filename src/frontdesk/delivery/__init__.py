"""The routing and delivery of answers."""
