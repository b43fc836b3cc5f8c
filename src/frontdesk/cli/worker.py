"""`frontdesk worker`: runs stored work of hosts in a process without a port."""

import asyncio
import signal
from argparse import Namespace
from contextlib import suppress

from frontdesk.cli.load import load_host
from frontdesk.cli.serve import new_loop, set_up_logs, spare_the_collector
from frontdesk.cli.terminal import CommandError, list_findings
from frontdesk.errors import ChannelConfigurationError
from frontdesk.host import AgentFrameworkHost


def run(arguments: Namespace) -> int:
    try:
        host = load_host(arguments.reference, arguments.state_dir)
        set_up_logs(arguments.log_level)
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(_work(host))
    except ChannelConfigurationError as error:
        raise CommandError(list_findings(str(arguments.reference), error.findings)) from None


async def _work(host: AgentFrameworkHost) -> int:
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Where a loop takes no signal handlers, Ctrl-C still ends it.
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, end.set)
    try:
        async with host.working():
            spare_the_collector()
            print(f"{host.target.name} has a worker more", "Ctrl-C stops it.", sep="\n", flush=True)
            await end.wait()
    except ChannelConfigurationError:
        raise
    except Exception as error:
        raise CommandError(
            "the worker did not start or did not end cleanly. See the log above for the reason"
        ) from error
    return 0
