"""Authentication of HTTP callers, and encryption of stored data."""
