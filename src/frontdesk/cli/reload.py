"""`frontdesk serve --reload`: starts the host anew in a process of its own whenever its code has changed."""

import sys
from argparse import Namespace
from functools import partial

import uvicorn
from uvicorn.supervisors import ChangeReload

from frontdesk.cli.mistakes import CommandError
from frontdesk.cli.server import Listener, set_up_logs
from frontdesk.kit.auth.secrets import redact


def watch(arguments: Namespace, listener: Listener) -> int:
    """Serve until a signal stops it. The port stays open in between, so that no caller is refused."""
    set_up_logs(arguments.log_level)
    config = uvicorn.Config("", log_config=None, reload=True)
    ChangeReload(config, target=partial(serve_once, arguments), sockets=[listener]).run()
    return 0


def serve_once(arguments: Namespace, sockets: list[Listener] | None = None) -> None:
    """Serve in the process that was started for it, until the code changes; a mistake in it is told, and waited out."""
    from frontdesk.cli.serve import serve_on

    try:
        serve_on(arguments, sockets[0] if sockets else None)
    except CommandError as error:
        print(f"frontdesk: {redact(str(error))}", file=sys.stderr, flush=True)
