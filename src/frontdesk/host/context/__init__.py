"""The `ChannelContext` of the host."""
