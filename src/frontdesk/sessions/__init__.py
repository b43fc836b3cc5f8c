"""Sessions: which one a request belongs to, and one turn at a time in each."""
