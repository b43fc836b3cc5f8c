"""The data models: frozen, with a JSON form."""
