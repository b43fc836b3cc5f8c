"""`frontdesk check`: the findings about a host, before it is started."""

import asyncio
from argparse import Namespace

from frontdesk.cli.load import load_host
from frontdesk.cli.mistakes import list_findings
from frontdesk.cli.online import check_online, foreign_channels
from frontdesk.cli.report import describe
from frontdesk.errors import ChannelConfigurationError
from frontdesk.host import AgentFrameworkHost
from frontdesk.kit.auth.secrets import redact

_HISTORY = {
    "provider": "the host keeps it, by a context provider inside the agent",
    "own": "a context provider of the agent's own keeps it",
    "host": "the host keeps it, and sends all of it with each turn",
    "agent": "the agent keeps it in its session, and is sent only what is new",
}


def run(arguments: Namespace) -> int:
    """Print the findings about a host, and with `--online` those of its platforms; return 1 if there are any."""
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
    """Print what the platforms say; return 1 if they do not take the settings."""
    lines, wrong = asyncio.run(check_online(host))
    print("platforms:", *lines, *(redact(f"wrong: {finding}") for finding in wrong), sep="\n")
    return 1 if wrong else 0
