"""Options of the operators' commands. Imports nothing of the host, so that `--help` is fast."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from typing import Any, NamedTuple

LIMIT = 100
_PLACE = (
    "PLACE is a state directory or the address of a Postgres database. A host that runs on SQLite answers by its "
    "socket; if none runs, the command opens the state itself."
)

_JOIN = (
    "Joins the principals of channels that share one auth object: afterwards an API key is the same person on all of "
    "them. Prints what would be joined, and changes nothing without --apply. "
) + _PLACE
_DELIVER = (
    "Sends a message to a person through a running host; the host must have started, and answer by its socket. It "
    "becomes a part of their conversation, and is sent once for each idempotency key."
)
_RUN = (
    "Runs the target for a person, in the background of a running host. The answer goes where answers to the person "
    "go on that channel; with --wait it is printed too."
)


class Kind(NamedTuple):
    """A kind of row: the subject of a command, its filters, and its actions with their help."""

    subject: str
    filters: tuple[str, ...]
    actions: Mapping[str, str] = {}
    statuses: tuple[str, ...] = ()
    by_channel: bool = False
    """Whether a row is named by its channel and the user's id there."""


KINDS: Mapping[str, Kind] = {
    "sessions": Kind("sessions", ("person", "since")),
    "runs": Kind(
        "runs",
        ("status", "person", "since"),
        {"cancel": "cancel one that works in the background"},
        ("queued", "running", "completed", "failed", "cancelled", "incomplete"),
    ),
    "deliveries": Kind(
        "deliveries, and what did not arrive",
        ("status", "channel", "person", "run", "since"),
        {"retry": "try one again that is dead or unknown", "drop": "give one up"},
        ("pending", "sending", "accepted", "unknown", "dead", "cancelled"),
    ),
    "approvals": Kind(
        "approvals",
        ("status", "person", "since"),
        {"cancel": "cancel one that nobody has answered"},
        ("pending", "approved", "rejected", "cancelled"),
    ),
    "people": Kind("the accounts of people", ("channel", "person"), by_channel=True),
    "links": Kind("links between accounts", ("channel", "person"), {"revoke": "end a link"}, by_channel=True),
    "inbox": Kind(
        "events of platforms",
        ("status", "channel", "since"),
        {"cancel": "cancel a turn that waits, or that is worked on"},
        ("waiting", "working", "done", "failed", "cancelled"),
    ),
    "audit": Kind("lines of the audit log", ("subject", "by", "person", "since")),
}
_HINTS: Mapping[str, tuple[str, str]] = {
    "channel": ("NAME", "only those of a channel"),
    "person": ("KEY", "only those of a person, by the isolation key that `people list` shows"),
    "run": ("ID", "only those of a run"),
    "subject": ("ID", "only those about this id"),
    "by": ("NAME", "only those of this person or operator"),
    "since": ("WHEN", "only those since then, such as 30m, 12h, 7d or 2026-12-31T00:00:00Z"),
}


def add_operator_commands(commands: Any) -> None:
    for name, kind in KINDS.items():
        told = f"Shows {kind.subject}, of everybody" + (", and acts on them. " if kind.actions else ". ") + _PLACE
        words = ", ".join(["list", "show", *kind.actions][:-1]) + f" and {['show', *kind.actions][-1]}"
        parser = commands.add_parser(name, help=f"{words} {kind.subject}", description=told)
        parser.set_defaults(module="operate")
        actions = parser.add_subparsers(dest="action", metavar="action", required=True)
        _add_list(actions.add_parser("list", help="show some, a page at a time", description=told), kind)
        show = actions.add_parser("show", help="show one, with all that is known of it", description=told)
        _add_name(show, kind)
        show.add_argument("--content", action="store_true", help="also what people said, and what was answered")
        show.add_argument("--json", action="store_true", help="as JSON")
        _add_place(show)
        for action, hint in kind.actions.items():
            _add_action(actions.add_parser(action, help=hint, description=told), kind)
        if name == "people":
            join = actions.add_parser("join-principals", help="make one person of each API key", description=_JOIN)
            join.add_argument("--apply", action="store_true", help="do it; without this, only print what would be done")
            join.add_argument(
                "--by", metavar="NAME", help="who does it, for the audit log; your user name, if not given"
            )
            join.add_argument("--json", action="store_true", help="as JSON")
            join.set_defaults(module="join_principals")
            _add_place(join)
        if name == "approvals":
            answer = actions.add_parser("answer", help="answer one, whoever else would have to", description=told)
            _add_answer(answer, kind)
            export = actions.add_parser("export", help="print all of them, with what was asked", description=told)
            _add_export(export, kind)


def add_speaking_commands(commands: Any) -> None:
    deliver = commands.add_parser("deliver", help="send a message to a person", description=_DELIVER)
    whom = deliver.add_mutually_exclusive_group(required=True)
    _add_to(whom, required=False)
    whom.add_argument("--person", metavar="KEY", help="the isolation key of the person, wherever they can be reached")
    run = commands.add_parser("run", help="run the target for a person", description=_RUN)
    _add_to(run, required=True)
    run.add_argument("--wait", metavar="SECONDS", type=count, help="wait for the end, and print the answer")
    for parser in (deliver, run):
        parser.set_defaults(module="deliver")
        parser.add_argument("text", metavar="TEXT", help="what to say; - reads it from the standard input")
        parser.add_argument("--idempotency-key", metavar="KEY", help="do it once, however often the command is run")
        parser.add_argument("--by", metavar="NAME", help="who does it, for the audit log; your user name, if not given")
        parser.add_argument("--json", action="store_true", help="as JSON")
        _add_place(parser)


def _add_to(parser: Any, *, required: bool) -> None:
    names, hint = ("CHANNEL", "ID"), "the person, by their channel and their id there"
    parser.add_argument("--to", nargs=2, metavar=names, required=required, help=hint)


def _add_list(parser: ArgumentParser, kind: Kind) -> None:
    for name in kind.filters:
        if name == "status":
            parser.add_argument("--status", choices=kind.statuses, help="only those; all, if not given")
        else:
            metavar, hint = _HINTS[name]
            parser.add_argument(f"--{name}", metavar=metavar, help=hint)
    parser.add_argument("--limit", metavar="N", type=count, default=LIMIT, help=f"{LIMIT} if not given")
    parser.add_argument("--after", metavar="CURSOR", help="go on behind a page, with the cursor that it ended with")
    parser.add_argument("--json", action="store_true", help="as JSON")
    _add_place(parser)


def _add_name(parser: ArgumentParser, kind: Kind) -> None:
    if kind.by_channel:
        parser.add_argument("channel", metavar="CHANNEL", help="the name of the channel")
    parser.add_argument("id", metavar="ID", help="the user's id there" if kind.by_channel else "the id that list shows")
    if kind is KINDS["runs"]:
        parser.add_argument("--person", metavar="KEY", help="whose run it is, if several have one of this id")


def _add_action(parser: ArgumentParser, kind: Kind) -> None:
    _add_name(parser, kind)
    parser.add_argument("--seen", metavar="SEEN", help="act only if the row still is what list or show said it is")
    parser.add_argument("--by", metavar="NAME", help="who does it, for the audit log; your user name, if not given")
    _add_place(parser)


def _add_answer(parser: ArgumentParser, kind: Kind) -> None:
    word = parser.add_mutually_exclusive_group(required=True)
    word.add_argument("--yes", action="store_true", help="the tool runs")
    word.add_argument("--no", action="store_true", help="it does not")
    parser.add_argument("--reason", metavar="TEXT", help="why, for the agent and for the audit log")
    _add_action(parser, kind)


def _add_export(parser: ArgumentParser, kind: Kind) -> None:
    parser.add_argument("--status", choices=kind.statuses, help="only those; all, if not given")
    metavar, hint = _HINTS["since"]
    parser.add_argument("--since", metavar=metavar, help=hint)
    parser.add_argument("--by", metavar="NAME", help="who does it, for the audit log; your user name, if not given")
    _add_place(parser)


def _add_place(parser: ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--state", metavar="PLACE", help="a state directory, or the address of a Postgres database")
    place.add_argument("--state-env", metavar="NAME", help="a variable that holds the place, with its password")
    place.add_argument("--socket", metavar="PATH", help="the socket of a running host, if it has a place of its own")


def count(text: str) -> int:
    """Parse a number that is at least 1."""
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= number <= 100_000:
        raise ArgumentTypeError(f"{text!r} must be a number from 1 to 100000")
    return number
