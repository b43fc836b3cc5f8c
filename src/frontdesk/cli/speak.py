"""`frontdesk deliver` and `frontdesk run`: speak to a person, and run the target for one, through a running host."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from frontdesk.admin.socket_server import LONGEST_REQUEST, SOCKET
from frontdesk.cli.mistakes import CommandError
from frontdesk.cli.operator_desk import refusal
from frontdesk.cli.places import place_of
from frontdesk.cli.terminal import printable, visible
from frontdesk.data.codec import from_json
from frontdesk.data.identity import ChannelIdentity
from frontdesk.errors import CodecError, OperatorError
from frontdesk.host.operator_client import OperatorClient

_NEEDS_HOST = "messages are sent, and the target is run, by a running host: start it, or give the place of its socket"


def run(arguments: Namespace) -> int:
    """Do what the command says; return 1 if a run that was waited for did not complete."""
    text = sys.stdin.read(LONGEST_REQUEST + 1) if arguments.text == "-" else arguments.text
    try:
        with OperatorClient(_socket(arguments), by=arguments.by) as host:
            return (_deliver if arguments.command == "deliver" else _run)(host, text, arguments)
    except OperatorError as error:
        if error.code == "no_host":
            raise CommandError(f"{error}; {_NEEDS_HOST}") from None
        raise refusal(error.code, str(error)) from None


def _socket(arguments: Namespace) -> Path:
    if arguments.socket is not None:
        return Path(arguments.socket)
    place = place_of("--state", arguments.state, arguments.state_env)
    if isinstance(place, str):
        raise CommandError(
            "--state: a host on Postgres has a socket only where admin_socket= puts it; name it with --socket"
        )
    return place.resolve().parent / SOCKET


def _deliver(host: OperatorClient, text: str, arguments: Namespace) -> int:
    to = arguments.person if arguments.to is None else _identity(arguments.to)
    sent = host.deliver(to, text, idempotency_key=arguments.idempotency_key)
    if arguments.json:
        print(json.dumps(sent, indent=2))
        return 0
    if not sent["deliveries"]:
        print("It is in the conversation; the channel sends nothing of it.")
        return 0
    ids = ", ".join(map(str, sent["deliveries"]))
    print(f"It is on its way to {visible(str(sent['person']))} on {visible(str(sent['channel']))}: {visible(ids)}")
    return 0


def _run(host: OperatorClient, text: str, arguments: Namespace) -> int:
    begun = host.run(_identity(arguments.to), text, idempotency_key=arguments.idempotency_key)
    if arguments.wait is None:
        existed = ", from an earlier request with the same key" if begun["existed"] else ""
        told = f"{visible(str(begun['run_id']))} is begun{existed}."
        print(json.dumps(begun, indent=2) if arguments.json else told)
        return 0
    ended = host.wait(begun["run_id"], person=begun["person"], seconds=arguments.wait)
    if arguments.json:
        print(json.dumps(ended, indent=2))
    elif ended["status"] == "completed":
        print(printable(_text_of(ended["result"])))
    else:
        print(
            f"{visible(str(ended['run_id']))} is {ended['status']}: {visible(str(ended['failure']))}", file=sys.stderr
        )
    return 0 if ended["status"] == "completed" else 1


def _identity(to: tuple[str, str]) -> ChannelIdentity:
    return ChannelIdentity(channel=to[0], native_id=to[1])


def _text_of(result: Any) -> str:
    try:
        found = from_json(result)
    except CodecError:
        found = None
    text = getattr(found, "text", None)
    return text if isinstance(text, str) else json.dumps(result, ensure_ascii=False)
