"""Runs one subcommand. Prints user errors as one message, without a traceback."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from frontdesk.cli.options import build_parser
from frontdesk.cli.terminal import CommandError

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Return 0 for success, 1 for a failure or findings, 2 for wrong usage.

    Operator commands return 3 if there is no such row, and 4 if its state does not allow the action.
    """
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # A character that can't be encoded, or a byte that can't be decoded, must not end the program.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    arguments = build_parser().parse_args(argv)
    try:
        # Each subcommand imports what it needs, so that `--help` imports nothing.
        module = getattr(arguments, "module", arguments.command.replace("-", "_"))
        return import_module(f"frontdesk.cli.{module}").run(arguments)
    except CommandError as error:
        # It may quote an error of the user's host, or an address with a password.
        from frontdesk.secret import redact

        print(f"frontdesk: {redact(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed it; what is still buffered is discarded.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
