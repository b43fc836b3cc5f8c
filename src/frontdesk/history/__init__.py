"""Storage of an agent's message history."""
