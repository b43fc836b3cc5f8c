"""Serves a channel over the standard input and output of the process, for one program on this machine."""

import sys
from contextlib import redirect_stdout

from mcp.server.stdio import stdio_server

from frontdesk.channels.mcp.channel import MCPChannel


async def serve_stdio(channel: MCPChannel) -> None:
    """Answer the messages of standard input until it ends. Meanwhile `print` writes to standard error."""
    server = channel.server
    async with stdio_server() as (read_stream, write_stream):
        # A buffered text would be written when the standard output is restored, between two messages.
        with redirect_stdout(sys.stderr):
            await server.sdk.run(read_stream, write_stream, server.sdk.create_initialization_options())
