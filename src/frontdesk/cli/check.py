"""`frontdesk check`: all that is wrong with a host, before it is started."""

from argparse import Namespace

from frontdesk.cli.load import load_host
from frontdesk.cli.mistakes import list_findings
from frontdesk.cli.report import describe
from frontdesk.errors import ChannelConfigurationError
from frontdesk.kit.secrets import redact


def run(arguments: Namespace) -> int:
    """Prints what it finds; 1 if anything is wrong."""
    try:
        host = load_host(arguments.reference, arguments.state_dir)
    except ChannelConfigurationError as error:
        print(redact(list_findings(str(arguments.reference), error.findings)))
        return 1
    warnings = [f"warning: {warning}" for warning in host.warnings]
    print(f"{arguments.reference}: all good", f"target: {host.target.name} ({host.target.kind})", sep="\n")
    print("channels:", *describe(host), f"runtime mode: {host.runtime_mode}", *warnings, sep="\n")
    return 0
