"""The nouns: frozen, and with a JSON form."""
