"""Sessions: session selection, and one turn at a time per session."""
