"""Background runs."""
