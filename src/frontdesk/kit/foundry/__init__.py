"""The conventions of Foundry's hosted agents: ids, headers, settings of the environment."""
