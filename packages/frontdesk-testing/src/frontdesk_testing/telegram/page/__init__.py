"""A page on which a person can write to a bot without an account."""
