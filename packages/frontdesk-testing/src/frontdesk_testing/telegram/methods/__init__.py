"""The methods that the fake acts on, by group."""
