"""`frontdesk deliver` and `frontdesk run`: message a person, or run the target for one, via a running host."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from frontdesk.admin.client import OperatorClient
from frontdesk.admin.socket_file import MAX_BODY_BYTES, SOCKET
from frontdesk.cli.admin_client import refusal
from frontdesk.cli.state_paths import locate
from frontdesk.cli.terminal import CommandError, printable, visible
from frontdesk.errors import CodecError, OperatorError
from frontdesk.framework.types import is_response
from frontdesk.framework.workflow_requests import extract_requests
from frontdesk.models.identity import ChannelIdentity
from frontdesk.serialization.codec import from_json

_NEEDS_HOST = "this command requires a running host: start it, or pass the path of its socket with --socket"


def run(arguments: Namespace) -> int:
    """Run the command. Return 1 if an awaited run did not complete or waits for an approval or answer."""
    text = sys.stdin.read(MAX_BODY_BYTES + 1) if arguments.text == "-" else arguments.text
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
    place = locate("--state", arguments.state, arguments.state_env)
    if isinstance(place, str):
        raise CommandError(
            "--state: a host on Postgres has a socket only if admin_socket= is set. Pass its path as --socket"
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
    waiting = _questions_in(ended["result"])
    if arguments.json:
        print(json.dumps(ended, indent=2))
    elif ended["status"] == "completed":
        print(printable(_extract_text(ended["result"])))
    else:
        print(
            f"{visible(str(ended['run_id']))} is {ended['status']}: {visible(str(ended['failure']))}", file=sys.stderr
        )
    if ended["status"] == "completed" and waiting:
        named = visible(str(ended["run_id"]))
        print(
            f"{named} has not done all: {waiting} of its questions must be answered first; "
            "`frontdesk approvals list` shows those that are approvals.",
            file=sys.stderr,
        )
    return 0 if ended["status"] == "completed" and not waiting else 1


def _identity(to: tuple[str, str]) -> ChannelIdentity:
    return ChannelIdentity(channel=to[0], native_id=to[1])


def _questions_in(result: Any) -> int:
    found = _read(result)
    return len(found.user_input_requests) if is_response(found) else len(extract_requests(found))


def _read(result: Any) -> Any:
    try:
        return from_json(result)
    except CodecError:
        return None


def _extract_text(result: Any) -> str:
    found = _read(result)
    text = getattr(found, "text", None)
    return text if isinstance(text, str) else json.dumps(result, ensure_ascii=False)
