"""Targets: adapters that run agents, workflows and plain functions in the same way."""
