"""Types and messages of the agent framework."""
