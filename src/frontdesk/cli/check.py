"""`frontdesk check`: validates a host without starting it."""

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, version

from frontdesk.chat.channel import ChatChannel
from frontdesk.cli.load import load_host
from frontdesk.cli.terminal import list_findings
from frontdesk.errors import ChannelConfigurationError, FrontdeskError
from frontdesk.host import AgentFrameworkHost
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.context import ChecksOnline
from frontdesk.secret import redact

TIMEOUT_SECONDS = 10.0
"""The seconds that one platform may take."""
_OWN = "frontdesk"


def foreign_channels(host: AgentFrameworkHost) -> list[str]:
    """Return a line for each third-party channel: its class, package and version."""
    return [
        f"  {channel.name}  {type(channel).__qualname__} of {_package(type(channel).__module__)}"
        for channel in host.channels
        if type(channel).__module__.partition(".")[0] != _OWN
    ]


def _package(module: str) -> str:
    for name in packages_distributions().get(module.partition(".")[0], ()):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return f"{module}, which is of no installed package"


async def check_online(host: AgentFrameworkHost, seconds: float = TIMEOUT_SECONDS) -> tuple[list[str], list[str]]:
    """Return a line for each checked channel, and a line for each finding. Channels are checked concurrently."""
    asked = [channel for channel in host.channels if isinstance(channel, ChecksOnline)]
    answers = await asyncio.gather(*(_ask(channel, seconds) for channel in asked))
    lines, wrong = list[str](), list[str]()
    for channel, findings in zip(asked, answers, strict=True):
        lines.append(f"  {channel.name}  {'wrong' if findings else 'ok'}")
        wrong += [f"channel {channel.name!r}: {finding}" for finding in findings]
    silent = [channel.name for channel in host.channels if not isinstance(channel, ChecksOnline)]
    return lines + [f"  {name}  has nothing to ask" for name in silent], wrong


async def _ask(channel: Channel, seconds: float) -> Sequence[str]:
    if not isinstance(channel, ChecksOnline):
        return ()
    try:
        async with asyncio.timeout(seconds):
            return list(await channel.check_online())
    except TimeoutError:
        return [f"its platform has not answered in {seconds:g} seconds"]
    except FrontdeskError as error:
        return [str(error)]
    except Exception as error:  # A channel of somebody else's may raise anything; the others are asked all the same.
        return [f"its check has failed: {type(error).__name__}: {error}"]


def describe(host: AgentFrameworkHost, base: str = "") -> list[str]:
    """Return a line for each channel: its path (its URL if a base is given) and its access policy."""
    places = [_place(channel, base) for channel in host.channels]
    names = max(len(channel.name) for channel in host.channels)
    width = max(map(len, places))
    return [
        f"  {channel.name:{names}}  {place:{width}}  {_access(host, channel)}".rstrip()
        for channel, place in zip(host.channels, places, strict=True)
    ]


def _place(channel: Channel, base: str) -> str:
    if webhook := _webhook(channel):
        return (base + channel.path + webhook).rstrip("/")
    if not channel.requires_auth_when_public:
        return "(no path)"
    more = "" if channel.path.endswith(channel.client_path) else channel.client_path
    return base + (channel.path + more or "/")


def _access(host: AgentFrameworkHost, channel: Channel) -> str:
    if _webhook(channel):
        return "its platform sends events there"
    if not channel.requires_auth_when_public:
        return ""
    if channel.auth is not None:
        return f"auth: {channel.auth.name}"
    try:
        # Raises if the host may not be served to everyone.
        host.check_bind("*")
    except ChannelConfigurationError:
        return "no auth: it answers this machine only"
    return "no auth: it answers anyone"


def _webhook(channel: Channel) -> str | None:
    if isinstance(channel, ChatChannel) and channel.chat_config.transport == "webhook":
        return channel.webhook_path
    return None


_HISTORY = {
    "provider": "the host keeps it, by a context provider inside the agent",
    "own": "a context provider of the agent's own keeps it",
    "host": "the host keeps it, and sends all of it with each turn",
    "agent": "the agent keeps it in its session, and is sent only what is new",
}


def run(arguments: Namespace) -> int:
    """Print the findings about a host, with `--online` also those of its platforms. Return 1 if there are any."""
    try:
        host = load_host(arguments.reference, arguments.state_dir)
        host.check_state()
    except ChannelConfigurationError as error:
        print(redact(list_findings(str(arguments.reference), error.findings)))
        return 1
    warnings = [f"warning: {warning}" for warning in host.warnings]
    print(f"{arguments.reference}: all good", f"target: {host.target.name} ({host.target.kind})", sep="\n")
    if host.target.history is not None:
        print(f"history: {_HISTORY[host.target.history]}")
    print("channels:", *describe(host), f"runtime mode: {host.runtime_mode}", *warnings, sep="\n")
    foreign = foreign_channels(host)
    if foreign:
        print("channels of other packages:", *foreign, sep="\n")
    return _check_online(host) if arguments.online else 0


def _check_online(host: AgentFrameworkHost) -> int:
    """Print the findings of the platforms. Return 1 if they reject the settings."""
    lines, wrong = asyncio.run(check_online(host))
    print("platforms:", *lines, *(redact(f"wrong: {finding}") for finding in wrong), sep="\n")
    return 1 if wrong else 0
