"""Runs one subcommand; a mistake of the user's ends as one clear message, never as a traceback."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from frontdesk.cli.mistakes import CommandError
from frontdesk.cli.options import build_parser

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; 0 is fine, 1 a failure or findings, 2 wrong usage."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # A character that the terminal can't show, or a byte that is no text, must not end the program.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    arguments = build_parser().parse_args(argv)
    try:
        # Each subcommand imports what it needs, so that `--help` imports nothing.
        return import_module(f"frontdesk.cli.{arguments.command.replace('-', '_')}").run(arguments)
    except CommandError as error:
        # It may quote what a host of the user's has said, or an address with a password.
        from frontdesk.kit.auth.secrets import redact

        print(f"frontdesk: {redact(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; what is still buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
