"""`frontdesk mcp`: serves the tools of a host over stdio, or forwards stdio to a running host."""

import asyncio
import os
import sys
from argparse import Namespace
from contextlib import redirect_stdout

from frontdesk.channels.mcp import MCPChannel
from frontdesk.cli.load import load_host
from frontdesk.cli.serve import new_loop, set_up_logs
from frontdesk.cli.terminal import CommandError, list_findings
from frontdesk.errors import ChannelConfigurationError
from frontdesk.host import AgentFrameworkHost


def run(arguments: Namespace) -> int:
    if (arguments.reference is None) == (arguments.url is None):
        raise CommandError("give a host (module:host) or --url URL, and not both")
    if arguments.url is not None:
        return _forward(arguments)
    if arguments.key_env is not None:
        raise CommandError("--key-env is for --url: over stdio the host needs no key")
    try:
        # What a module prints is no message of the protocol.
        with redirect_stdout(sys.stderr):
            host = load_host(arguments.reference, arguments.state_dir)
            channel = find_channel(host, arguments.channel)
        set_up_logs(arguments.log_level)
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(_serve(host, channel))
    except ChannelConfigurationError as error:
        raise CommandError(list_findings(str(arguments.reference), error.findings)) from None


def _forward(arguments: Namespace) -> int:
    from frontdesk.cli.mcp_forward import forward_stdio

    key = None
    if arguments.key_env is not None:
        key = os.environ.get(arguments.key_env)
        if not key:
            raise CommandError(f"--key-env: the environment variable {arguments.key_env} is not set")
    set_up_logs(arguments.log_level)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(forward_stdio(arguments.url, key))


def find_channel(host: AgentFrameworkHost, name: str | None) -> MCPChannel:
    """Return the MCP channel of a host, by its name if there are several."""
    found = [channel for channel in host.channels if isinstance(channel, MCPChannel)]
    if name is not None:
        found = [channel for channel in found if channel.name == name]
    if not found:
        raise CommandError("the host has no such MCPChannel. Add MCPChannel() to its channels")
    if len(found) > 1:
        names = ", ".join(channel.name for channel in found)
        raise CommandError(f"the host has several MCP channels: choose one of {names} with --channel")
    return found[0]


async def _serve(host: AgentFrameworkHost, channel: MCPChannel) -> int:
    from frontdesk.channels.mcp.stdio import serve_stdio

    try:
        async with host.lifespan():
            await serve_stdio(channel)
    except ChannelConfigurationError:
        raise
    except Exception as error:
        raise CommandError("the host did not start or did not end cleanly. See the log above for the reason") from error
    return 0
