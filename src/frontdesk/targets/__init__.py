"""Targets: adapters by which the host runs agents, workflows and plain functions in the same way."""
