"""The options of all subcommands, and the validation of their values."""

import re
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn, cast
from urllib.parse import urlsplit

from frontdesk.cli.init import CHANNEL_TEMPLATES, MODELS
from frontdesk.cli.operator_options import add_operator_commands, add_speaking_commands, count
from frontdesk.http.server_limits import ServerLimits

HOST = "127.0.0.1"
PORT = 8000
CHAT_URL = f"http://{HOST}:{PORT}/invocations"
MCP_URL = f"http://{HOST}:{PORT}/mcp"
KEY_FILE = "keys.jsonl"
LOG_LEVELS = ("critical", "error", "warning", "info", "debug")


_INVALID_CHOICE = re.compile(r"invalid choice: '([^']*)'")
_ROOT_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")


class Reference(NamedTuple):
    """A reference to a host: a module or a file, and a name in it."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"

    @property
    def is_file(self) -> bool:
        """Return True for a path, False for a module name."""
        return self.module.endswith(".py") or "/" in self.module or "\\" in self.module


class _Parser(ArgumentParser):
    """Parser whose errors suggest the command or option that was probably meant."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            super().error(f"unrecognized arguments: {' '.join(unknown)}{_suggest(unknown[0], self._options(found))}")
        return found

    def error(self, message: str) -> NoReturn:
        wrong = _INVALID_CHOICE.search(message)
        choices = [str(choice) for action in self._actions for choice in action.choices or ()]
        super().error(message if wrong is None else message + _suggest(wrong[1], choices))

    def _options(self, found: Namespace) -> list[str]:
        options: list[str] = []
        for action in self._actions:
            options += action.option_strings
            below: Any = action.choices
            if isinstance(below, Mapping):
                chosen: Any = cast("Mapping[str, Any]", below).get(getattr(found, action.dest, ""))
                options += chosen._options(found) if isinstance(chosen, _Parser) else []
        return options


def _suggest(given: str, known: Sequence[str]) -> str:
    return "".join(f"; did you mean {name!r}?" for name in get_close_matches(given.partition("=")[0], known, n=1))


def build_parser() -> ArgumentParser:
    parser = _Parser(prog="frontdesk", description="Serve one agent on many channels.")
    parser.add_argument("--version", action=_Version, help="show the version and leave")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)

    serve = commands.add_parser("serve", help="serve a host", description="Serves a host until Ctrl-C.")
    _add_reference(serve)
    _add_address(serve, "in Foundry what it expects", default=None)
    _add_log_level(serve, "info if not given; debug logs each request too")
    _add_deployment(serve)
    _add_server_limits(serve)

    _add_worker(commands.add_parser("worker", help="work beside hosts, without a port", description=_WORKER))

    demo = commands.add_parser(
        "demo",
        help="serve a hotel's concierge to try",
        description="Serves an agent to try, with no key and no network; with OPENAI_API_KEY set, over a real model.",
    )
    _add_address(demo, "or the next free one")
    _add_state_dir(demo, "where to keep conversations; without it they are gone when the demo stops")
    demo.add_argument(
        "--telegram", action="store_true", help="start a fake Telegram too, with a page on which you write to the bot"
    )

    _add_mcp(commands.add_parser("mcp", help="serve the tools of an agent over stdio", description=_MCP))

    _add_chat(commands.add_parser("chat", help="talk to an agent", description=_CHAT))

    check = commands.add_parser(
        "check", help="find what is wrong with a host", description="Builds a host and tells all that is wrong with it."
    )
    _add_reference(check)
    check.add_argument("--online", action="store_true", help="ask the platforms whether they take the credentials too")

    _add_init(commands.add_parser("init", help="write a project of your own", description=_INIT))
    _add_keys(commands.add_parser("keys", help="make, list and revoke API keys", description=_KEYS))
    add_operator_commands(commands)
    add_speaking_commands(commands)
    _add_move(commands.add_parser("move-state", help="move all state into another database", description=_MOVE))
    return parser


_CHAT = (
    "Talks to the agent behind an Invocations channel. /new starts a new session, /quit leaves, Ctrl-C cancels an "
    "answer. If the input is a pipe, each line is a turn."
)

_INIT = (
    "Writes a host, a test, an example of its settings and a Makefile into a directory, and overwrites nothing. It "
    "asks for the model and the channels that are not given, and needs no network."
)

_KEYS = (
    "Makes, lists and revokes the API keys of a file, for a host with ApiKeyAuth.from_file(FILE). Only hashes are kept "
    "there. A host that runs takes up what has changed within a second."
)

_WORKER = (
    "Answers and sends what waits in the store of a host, until Ctrl-C; it opens no port. Any number of workers and "
    "hosts can share a store on Postgres."
)

_MCP = (
    "Serves the MCP channel of a host over standard input and output, for a program on this machine such as a desktop "
    "client. With --url it forwards the messages to a host that runs, and its state stays there."
)

_MOVE = (
    "Copies everything that a host keeps into an empty database: from SQLite to Postgres, back, or to a new place. "
    "Stop the host first. PLACE is a state directory, a SQLite file (one that ends in .db, or is there), or an address "
    "of a Postgres database, such as postgresql://user@host/name."
)


def _add_chat(chat: ArgumentParser) -> None:
    chat.add_argument("url", metavar="URL", nargs="?", type=url, default=CHAT_URL, help=f"{CHAT_URL} if not given")
    chat.add_argument("--session", metavar="ID", help="go on with this session")
    key = chat.add_mutually_exclusive_group()
    key.add_argument("--api-key-file", metavar="FILE", help="a file that holds the API key and nothing else")
    key.add_argument("--api-key", metavar="KEY", help="the API key; others on this machine can see it while you chat")


def _add_mcp(mcp: ArgumentParser) -> None:
    mcp.add_argument(
        "reference", metavar="module:host", nargs="?", type=reference, help="a host, or a function that returns one"
    )
    _add_state_dir(mcp, "handed to a function that takes state_dir; a host in a module has its own already")
    mcp.add_argument("--channel", metavar="NAME", help="the MCP channel, if the host has several")
    mcp.add_argument("--url", metavar="URL", type=mcp_url, help="the MCP channel of a running host, such as " + MCP_URL)
    mcp.add_argument("--key-env", metavar="NAME", help="the environment variable that holds the API key for --url")
    _add_log_level(mcp, "warning if not given; logs go to standard error", default="warning")


def _add_init(init: ArgumentParser) -> None:
    init.add_argument("directory", metavar="DIR", type=directory, help="where to write; it is made if it is missing")
    init.add_argument("--model", choices=tuple(MODELS), help="whose model answers")
    init.add_argument(
        *("--channels", "--channel", "--doors"),
        metavar="NAMES",
        type=parse_channels,
        help=f"some of {','.join(CHANNEL_TEMPLATES)}, separated by commas; --doors is the deprecated name",
    )


def _add_keys(keys: ArgumentParser) -> None:
    actions = keys.add_subparsers(dest="action", metavar="action", required=True)
    create = actions.add_parser("create", help="make a key and print it, this once", description=_KEYS)
    create.add_argument("principal", metavar="NAME", help="whose key it is: the principal that owns what it makes")
    create.add_argument(
        "--expires", metavar="WHEN", help="such as 90d, 12h or 2026-12-31T00:00:00Z; if not given, never"
    )
    shown = actions.add_parser("list", help="show all keys, by their ids", description=_KEYS)
    shown.add_argument("--json", action="store_true", help="as JSON")
    revoke = actions.add_parser("revoke", help="take a key away", description=_KEYS)
    revoke.add_argument("key_id", metavar="ID", help="the id that list shows")
    for action in (create, shown, revoke):
        action.add_argument("--file", metavar="FILE", default=KEY_FILE, help=f"{KEY_FILE} if not given")


def _add_worker(worker: ArgumentParser) -> None:
    _add_reference(worker)
    _add_log_level(worker, "info if not given")


def _add_deployment(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--reload", action="store_true", help="start it anew when a .py file below this directory has changed"
    )
    parser.add_argument(
        "--root-path", metavar="PATH", type=root_path, help="the path that a proxy in front has cut off"
    )
    parser.add_argument(
        "--proxy",
        metavar="ADDRESSES",
        type=proxies,
        help="addresses or networks of proxies in front, separated by commas: their X-Forwarded-For and "
        "X-Forwarded-Proto say who calls; those of others are not believed",
    )


def _add_server_limits(parser: ArgumentParser) -> None:
    for option, kind, hint in (
        ("--max-connections", count, "connections at once; more are refused with 503"),
        ("--max-url-bytes", count, "bytes of a path and query; more are refused with 414"),
        ("--max-head-bytes", count, "bytes of a request's whole head; more are refused with 431"),
        ("--head-seconds", seconds, "seconds that a head may take; after that the connection is closed"),
        ("--send-seconds", seconds, "seconds for which a client may take nothing; after that the connection is closed"),
    ):
        default = getattr(ServerLimits, option[2:].replace("-", "_"))
        metavar = "SECONDS" if kind is seconds else "N"
        parser.add_argument(option, metavar=metavar, type=kind, default=default, help=f"{hint}; {default} if not given")


def _add_log_level(parser: ArgumentParser, hint: str, default: str = "info") -> None:
    parser.add_argument("--log-level", choices=LOG_LEVELS, default=default, help=hint)


def _add_move(move: ArgumentParser) -> None:
    for option, dest, hint in (("--from", "source", "where the state is"), ("--to", "target", "where it goes")):
        place = move.add_mutually_exclusive_group(required=True)
        place.add_argument(option, dest=dest, metavar="PLACE", help=hint)
        place.add_argument(
            f"{option}-env",
            dest=f"{dest}_env",
            metavar="NAME",
            help="a variable that holds the place, with its password",
        )


def _add_reference(parser: ArgumentParser) -> None:
    parser.add_argument(
        "reference",
        metavar="module:host",
        type=reference,
        help="a host, or a function that returns one: module:name or path/to/file.py:name",
    )
    _add_state_dir(parser, "handed to a function that takes state_dir; a host in a module has its own already")


def _add_state_dir(parser: ArgumentParser, hint: str) -> None:
    parser.add_argument("--state-dir", metavar="DIR", type=directory, help=hint)


def _add_address(parser: ArgumentParser, otherwise: str, default: str | None = HOST) -> None:
    parser.add_argument("--host", default=default, help=f"the address to bind to, {HOST} if not given")
    parser.add_argument("--port", type=port, help=f"{PORT} if not given, {otherwise}; 0 is any free one")


def reference(text: str) -> Reference:
    """Parse `module:name` or `path/to/file.py:name`."""
    module, _, name = text.rpartition(":")
    if not module or not name.isidentifier():
        example = text if text.endswith(".py") else text.partition(":")[0] or "module"
        raise ArgumentTypeError(f"{text!r} names no host. Write {example + ':host'!r}")
    parsed = Reference(module, name)
    if not parsed.is_file and not all(part.isidentifier() for part in module.split(".")):
        raise ArgumentTypeError(f"{module!r} in {text!r} is neither a module nor a .py file")
    return parsed


def directory(text: str) -> str:
    """Parse a directory, which need not exist."""
    if not text:
        raise ArgumentTypeError("a directory is required")
    return text


def parse_channels(text: str) -> list[str]:
    """Parse comma-separated channel types. Return them in the order in which they are offered."""
    names = text.split(",")
    unknown = [name for name in names if name not in CHANNEL_TEMPLATES]
    if unknown:
        raise ArgumentTypeError(f"unknown channel {unknown[0]!r}, choose from {', '.join(CHANNEL_TEMPLATES)}")
    return [name for name in CHANNEL_TEMPLATES if name in names]


def seconds(text: str) -> float:
    """Parse a number of seconds, greater than 0 and at most an hour."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 3600:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds up to 3600")
    return number


def root_path(text: str) -> str:
    """Parse the path prefix under which a proxy serves the host."""
    if not _ROOT_PATH.fullmatch(text):
        raise ArgumentTypeError(
            f"{text!r} is not a path such as /agent. It must begin with a slash and not end with one"
        )
    return text


def proxies(text: str) -> str:
    """Parse the addresses and networks of proxies. Networks that cover all addresses are rejected."""
    from ipaddress import ip_network

    for part in text.split(","):
        try:
            network = ip_network(part.strip())
        except ValueError:
            raise ArgumentTypeError(f"{part!r} is neither an address nor a network, such as 10.1.0.0/16") from None
        if network.prefixlen == 0:
            raise ArgumentTypeError(f"{part!r} contains all addresses, which would let any client set its address")
    return text


def port(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number <= 65535:
        raise ArgumentTypeError(f"{text!r} is not a port: it must be from 0 to 65535")
    return number


def url(text: str, path: str = "/invocations") -> str:
    """Parse an HTTP URL. A URL without a path gets the default path."""
    try:
        parts = urlsplit(text)
        host, number = parts.hostname, parts.port
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a URL: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise ArgumentTypeError(f"{text!r} is not a URL: it must begin with http:// or https://")
    if not host or number == 0 or any(character.isspace() for character in text):
        raise ArgumentTypeError(f"{text!r} is not a URL: its host is missing or invalid")
    return parts._replace(path=path, fragment="").geturl() if parts.path in ("", "/") else text


def mcp_url(text: str) -> str:
    """Parse the URL of an MCP channel. A URL without a path gets the default path of the channel."""
    return url(text, "/mcp")


class _Version(Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: Any = None) -> None:
        from importlib.metadata import version

        print(f"frontdesk {version('frontdesk')}")
        parser.exit()
