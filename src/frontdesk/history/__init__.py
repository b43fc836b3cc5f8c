"""Where an agent's message history comes from and goes to."""
