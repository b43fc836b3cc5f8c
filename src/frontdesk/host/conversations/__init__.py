"""The optional context for channels that serve OpenAI conversations."""
