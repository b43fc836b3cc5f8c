"""What the host runs: agents, workflows and plain functions, all the same way."""
