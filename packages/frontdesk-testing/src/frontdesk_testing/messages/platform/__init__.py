"""The fake platform: a chat service in a separate process, with fault injection."""
