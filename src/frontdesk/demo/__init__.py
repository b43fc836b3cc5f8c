"""A host to try, with no key and no network."""
