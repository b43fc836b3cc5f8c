"""Tools that channels and the host share."""
