"""The fake platform: a chat service of its own process, which can fail in every way."""
