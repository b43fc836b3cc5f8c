"""The storage of an agent's message history."""
