"""Conventions of Foundry's hosted agents: ids, headers and environment variables."""
