"""Validates the configuration when the host is built. One error reports all findings."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypedDict, TypeVar, cast, get_args

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from frontdesk.admin.socket_file import path_findings
from frontdesk.approvals.policy import ApprovalOptions, ApproverRule
from frontdesk.chat.commands import list_names
from frontdesk.delivery.push import can_push
from frontdesk.errors import ChannelConfigurationError
from frontdesk.hooks import takes
from frontdesk.host.config import AdminSocketPlace, HostConfig, RuntimeMode, is_public
from frontdesk.host.validation.abilities import ability_findings
from frontdesk.interfaces.abilities import store_ability
from frontdesk.interfaces.channel import (
    AllowsOrigin,
    Channel,
    ChannelCommand,
    ChannelContribution,
    ChannelPush,
    ChannelPushCodec,
)
from frontdesk.interfaces.chat import AsksApprovers, PushesParts
from frontdesk.interfaces.context import CommandLocale, CommandScope
from frontdesk.interfaces.linker import IdentityLinker
from frontdesk.interfaces.runner import DurableTaskRunner
from frontdesk.interfaces.store import HostStateStore
from frontdesk.interfaces.target import RequiresApprovals, Target, TargetInfo
from frontdesk.runners.base import TaskRunner
from frontdesk.serialization.json_tree import refusal


def push_findings(channels: Sequence[Any], target: TargetInfo) -> list[str]:
    """Find push channels that require whole results without a JSON form, which can't be queued."""
    whole = [
        channel
        for channel in channels
        if isinstance(channel, ChannelPush) and not isinstance(channel, (ChannelPushCodec, PushesParts))
    ]
    wrong = [error for error in map(refusal, target.outputs) if error is not None]
    return [
        f"channel {getattr(channel, 'name', '')!r}: what the target puts out can't be kept until it is sent: {error}, "
        "or give the channel encode_push and decode_push"
        for channel in whole
        for error in wrong
    ]


def seal_findings(channels: Sequence[Channel], *, has_key: bool) -> list[str]:
    """Find channels that store platform tokens on a host that can't encrypt them."""
    return [
        f"channel {channel.name!r}: it keeps tokens of its platform, which are stored only encrypted; "
        "give the host a seal_key="
        for channel in channels
        if channel.needs_seal_key and not has_key
    ]


def socket_findings(place: AdminSocketPlace, store: HostStateStore | None, database: Path | None) -> list[str]:
    """Find an invalid location of the admin socket."""
    if isinstance(place, (str, Path)):
        return [f"admin_socket: {finding}" for finding in path_findings(Path(place).absolute())]
    has_directory = database is not None or (store is not None and store.directory is not None)
    if place is not True or has_directory:
        return []
    return ["admin_socket=True: there is no state directory to put it in; give it a path"]


def history_findings(chosen: Any, target: TargetInfo) -> list[str]:
    """Find a history setting that has no effect."""
    if chosen is None:
        return []
    if chosen not in ("host", "agent"):
        return [f"history: {chosen!r} is not 'host' or 'agent'"]
    if target.kind == "agent":
        return []
    return [f"history has no effect: the target is of kind {target.kind!r}, and only an agent has the choice"]


def interrupt_findings(config: HostConfig, target: TargetInfo) -> list[str]:
    """Find an interruption policy that the target does not support."""
    if config.on_interrupt != "resume" or target.kind == "workflow":
        return []
    return [f"on_interrupt: only a workflow can resume, and the target is of kind {target.kind!r}"]


def runtime_findings(mode: RuntimeMode, how: str, runner: DurableTaskRunner | None, config: HostConfig) -> list[str]:
    """Find an ephemeral process without a durable runner: it can't keep work for later."""
    if config.allow_in_process_runner or not runtime_warnings(mode, runner):
        return []
    return [
        f"runtime_mode is 'ephemeral' ({how}) and there is no durable runner: background work would be lost; "
        "pass runner=, or allow_in_process_runner=True to accept that"
    ]


def store_findings(store: HostStateStore | None) -> list[str]:
    """Return the abilities that a store would lose, one line each."""
    return [] if store is None else [f"store: {finding}" for finding in ability_findings(store, store_ability)]


def runner_findings(runner: DurableTaskRunner | None, store: HostStateStore | None) -> list[str]:
    """Find a runner that works on another store than the host."""
    if isinstance(runner, TaskRunner) and runner.store is not store:
        return ["runner: it works on another store than the host; give both the same store="]
    return []


def worker_findings(store: HostStateStore) -> list[str]:
    """Find a store that a worker can't share with the host."""
    if store.lease_seconds is not None:
        return []
    return ["store: a worker needs one that many processes can use at once, such as PostgresStateStore"]


def runtime_warnings(mode: RuntimeMode, runner: DurableTaskRunner | None) -> list[str]:
    """Warn about the accepted data loss of an ephemeral process."""
    if mode != "ephemeral" or (runner is not None and runner.durable and not runner.in_process):
        return []
    return ["background work is lost when this process ends (allow_in_process_runner=True)"]


def memory_warnings(mode: RuntimeMode, store: HostStateStore) -> list[str]:
    """Warn about in-memory state in an ephemeral process."""
    if mode != "ephemeral" or store.durable:
        return []
    return ["the state is in memory, and lost when this ephemeral process ends: set state_dir= or store="]


def list_polling_warnings(mode: RuntimeMode, channels: Sequence[Channel]) -> list[str]:
    """Warn about polling channels in a process that ends between requests: they only receive while it runs."""
    if mode != "ephemeral":
        return []
    return [
        f"channel {channel.name!r}: events are fetched only while this process runs, and it is ephemeral; use a webhook"
        for channel in channels
        if channel.fetches_events
    ]


def bind_findings(address: str, channels: Sequence[Channel], config: HostConfig) -> list[str]:
    """Find channels that are reachable by others without credentials."""
    if not is_public(address) or config.allow_anonymous:
        return []
    return [
        f"channel {channel.name!r}: {address} can be reached by other machines, and {_describe_unguarded(channel)}"
        "bind to 127.0.0.1, or set allow_anonymous=True on the host"
        for channel in channels
        if channel.requires_auth_when_public and channel.auth is None
    ]


def _describe_unguarded(channel: Channel) -> str:
    """Return the reason why a channel is unauthenticated, and the alternatives."""
    return "lets in every visitor; " if channel.identifies_anonymous_callers else "the channel has no auth=; add it, "


P = ParamSpec("P")
S = TypeVar("S")

_NO_STORE = (
    "store: a text or a path is no store; give state_dir= for a directory with a SQLite file, or "
    "store=PostgresStateStore(...) with the address of a database"
)


def as_list(channels: Any) -> list[Any]:
    """Return the channels of a host as a list. Raises if they are not a list or other plain iterable."""
    if isinstance(channels, Iterable) and not isinstance(channels, (str, bytes, Mapping)):
        return list(cast("Iterable[Any]", channels))
    raise ChannelConfigurationError(f"channels: {_wrong_list(channels)}")


def require_instances(**given: object) -> None:
    """Reject classes and store addresses where a host needs objects."""
    classes = {name: kind for name, kind in given.items() if inspect.isclass(kind)}
    if classes:
        raise ChannelConfigurationError([class_finding(name, kind) for name, kind in classes.items()])
    if isinstance(given.get("store"), (str, Path)):
        # Not shown: an address may have a password in it.
        raise ChannelConfigurationError(_NO_STORE)


def argument_findings(extras: Any, store: Any, clock: Any, ids: Any, middleware: Any) -> list[str]:
    """Return the arguments of a host with a wrong type, one line each. None means not given."""
    wrong = [
        f"{name}: {type(value).__name__} has no {needed}; give {example}"
        for name, value, needed, example in (
            ("runner", extras.runner, "register", "a task runner, such as ProcrastinateTaskRunner(store)"),
            ("store", store, "transaction", "a store, such as SqliteStateStore(path)"),
            ("clock", clock, "now", "one with now() and steady(), or leave it out"),
            ("ids", ids, "new", "one with new(prefix), or leave it out"),
        )
        if value is not None and not _is_reported(name, value) and not callable(getattr(value, needed, None))
    ]
    wrong += _middleware_findings(middleware)
    return (
        wrong
        + callback_findings("on_startup", extras.on_startup)
        + callback_findings("on_shutdown", extras.on_shutdown)
    )


def _is_reported(name: str, value: Any) -> bool:
    return name in ("runner", "store") and (
        inspect.isclass(value) or (name == "store" and isinstance(value, (str, Path)))
    )


def callback_findings(name: str, callbacks: Any) -> list[str]:
    """Return the start-up and shutdown callbacks that can't be awaited, one line each."""
    if not isinstance(callbacks, Collection) or isinstance(callbacks, (str, bytes)):
        return [f"{name} must be a list of async functions, got {type(callbacks).__name__}"]
    return [
        f"{name}: {_get_name(callback)} is not an async function; write `async def`"
        for callback in cast("Collection[Any]", callbacks)
        if not _can_be_awaited(callback)
    ]


def _can_be_awaited(callback: Any) -> bool:
    """Return False for a function that is certainly not async. A lambda or an object may return an awaitable."""
    if not callable(callback):
        return False
    if not (inspect.isfunction(callback) or inspect.ismethod(callback)):
        return True
    if inspect.iscoroutinefunction(callback) or callback.__name__ == "<lambda>":
        return True
    returns = inspect.signature(callback).return_annotation
    return returns not in (inspect.Signature.empty, None, "None")


def _middleware_findings(middleware: Any) -> list[str]:
    if not isinstance(middleware, Collection) or isinstance(middleware, (str, bytes)):
        return [f"middleware must be a list of starlette.middleware.Middleware(...), got {type(middleware).__name__}"]
    return [
        f"middleware: {_get_name(one)} is not a starlette.middleware.Middleware(...); write Middleware(cls, **options)"
        for one in cast("Collection[Any]", middleware)
        if not isinstance(one, Middleware)
    ]


def _get_name(value: Any) -> str:
    return str(getattr(value, "__name__", type(value).__name__))


def checks_names(
    called: str, more: Collection[str] = ()
) -> Callable[[Callable[Concatenate[S, P], None]], Callable[Concatenate[S, P], None]]:
    """Reject unknown keyword arguments of a constructor and suggest the name that was probably meant.

    This happens before the arguments are bound. Otherwise a misspelt required one would be reported as missing.
    """

    def decorate(make: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
        known = [*inspect.signature(make).parameters, *more]

        @wraps(make)
        def check_and_make(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
            for name in kwargs:
                if name not in known:
                    close = get_close_matches(name, known, n=1)
                    hint = f"; did you mean {close[0]!r}?" if close else ""
                    raise TypeError(f"{called}() got an unexpected keyword argument {name!r}{hint}")
            make(self, *args, **kwargs)

        return check_and_make

    return decorate


def class_finding(name: str, kind: type) -> str:
    """Return the finding for an argument that is a class instead of an instance."""
    return f"{name}: {kind.__name__} is a class; give an instance: {kind.__name__}(...)"


def _wrong_list(channels: Any) -> str:
    if inspect.isclass(channels):
        return f"{channels.__name__} is a class; give a list of instances: channels=[{channels.__name__}(...)]"
    kind = type(channels).__name__
    if isinstance(channels, Channel):
        return f"{kind} is one channel; put it into a list: channels=[{kind}(...)]"
    return f"{kind} is not a list of channels"


_NAME = re.compile(r"\S{1,32}")
_LOCALE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_NAME_RULE = "a name is one word of at most 32 small letters, without a slash"


def contribution_findings(channel: str, contribution: Any) -> list[str]:
    if not isinstance(contribution, ChannelContribution):
        kind = type(contribution).__name__
        return [f"channel {channel!r}: contribute returned {kind}, and must return a ChannelContribution"]
    commands: Sequence[Any] = contribution.commands
    wrong = [finding for command in commands for finding in _command_findings(command)]
    if not wrong:
        names = Counter(command.name for command in commands)
        names.update(name for command in commands for name in list_names(command) - {command.name})
        wrong = [f"{count} commands are called {name!r}" for name, count in names.items() if count > 1]
    return [f"channel {channel!r}: {finding}" for finding in wrong]


def _command_findings(command: Any) -> list[str]:
    if not isinstance(command, ChannelCommand):
        return [f"{command!r} is not a ChannelCommand"]
    wrong: list[str] = []
    name: Any = command.name
    if not _is_name(name):
        wrong.append(f"command {name!r}: {_NAME_RULE}")
    handler: Any = command.handler
    if not callable(handler):
        wrong.append(f"command {name!r}: its handler is not a function, but {handler!r}")
    elif not takes(handler, 1):
        wrong.append(f"command {name!r}: its handler must take the context: `async def {name}(context)`")
    return [*wrong, *(f"command {name!r}: {finding}" for finding in _offer_findings(command))]


def _offer_findings(command: ChannelCommand) -> list[str]:
    """Find invalid scopes and localized names of a command."""
    scopes: Any = command.scopes
    known = get_args(CommandScope)
    if isinstance(scopes, str) or not isinstance(scopes, Sequence):
        return [f"scopes must be a tuple of {', '.join(known)}, and is {scopes!r}"]
    unknown = [scope for scope in cast("Sequence[Any]", scopes) if scope not in known]
    wrong = [f"scopes: {scope!r} is none of {', '.join(known)}" for scope in unknown]
    words: Any
    for tag, words in command.locales.items():
        if not _LOCALE.fullmatch(tag):
            wrong.append(f"locales: {tag!r} is no language tag, such as 'de' or 'pt-BR'")
        if not isinstance(words, CommandLocale):
            wrong.append(f"locales: {words!r} is not a CommandLocale")
        elif words.name and not _is_name(words.name):
            wrong.append(f"locales: {words.name!r}: {_NAME_RULE}")
    return wrong


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and bool(_NAME.fullmatch(name)) and name == name.lower() and not name.startswith("/")


_TWICE = "{}: it is the same as {}=; give one of them"
_DEBUG = (
    "debug: the host shows no traceback to a caller; leave it out, and find the reason of an error in the log, under "
    "the id that the caller was given"
)


class DesignNames(TypedDict, total=False):
    """Alternative names: `identity_linker` for `linker`, `durable_task_runner` for `runner`. `debug` can only be
    false."""

    identity_linker: IdentityLinker | None
    durable_task_runner: DurableTaskRunner | None
    debug: bool


class Spelling:
    """The linker and the runner, by either of their names. An unknown name is a `TypeError`."""

    def __init__(self, names: DesignNames, linker: IdentityLinker | None, runner: DurableTaskRunner | None) -> None:
        unknown = next((name for name in names if name not in DesignNames.__annotations__), None)
        if unknown is not None:
            raise TypeError(f"AgentFrameworkHost.__init__() got an unexpected keyword argument {unknown!r}")
        self.findings = [_DEBUG] if names.get("debug") else []
        other_linker, other_runner = names.get("identity_linker"), names.get("durable_task_runner")
        if linker is not None and other_linker is not None:
            self.findings.append(_TWICE.format("identity_linker", "linker"))
        if runner is not None and other_runner is not None:
            self.findings.append(_TWICE.format("durable_task_runner", "runner"))
        self.linker = linker or other_linker
        self.runner = runner or other_runner


_ANY_PAGE = (
    "channel {!r}: the host's CORSMiddleware lets pages of every origin in, and the channel has no auth=: any page "
    "that somebody on this machine visits can call it; name the origins, or add auth="
)


def get_origin_rule(middleware: Sequence[Middleware]) -> AllowsOrigin | None:
    """Return the origin check of the outermost CORS middleware, or None."""
    cors = _build_cors(middleware)
    return None if cors is None else cors.is_allowed_origin


def origin_warnings(middleware: Sequence[Middleware], channels: Sequence[Channel]) -> list[str]:
    """Warn about channels that pages of every origin can call."""
    cors = _build_cors(middleware)
    if cors is None or not cors.allow_all_origins:
        return []
    return [
        _ANY_PAGE.format(channel.name)
        for channel in channels
        if channel.requires_auth_when_public and channel.auth is None
    ]


def _build_cors(middleware: Sequence[Middleware]) -> CORSMiddleware | None:
    for kind, arguments, keywords in middleware:
        if isinstance(kind, type) and issubclass(kind, CORSMiddleware):
            return kind(Starlette(), *arguments, **keywords)
    return None


_CANNOT_ASK = (
    "approvals: tools: the host can't make the tools of a {} ask; give an agent or a workflow of agents as target, or "
    "let the function ask, and choose the approvers with default= or rule="
)


def approval_findings(options: Any, channels: Sequence[Channel], target: Target, *, linked: bool) -> list[str]:
    """Return the findings for approval rules, one line each. `linked` is True if the host has a linker."""
    if not isinstance(options, ApprovalOptions):
        return [f"approvals: {type(options).__name__} is not ApprovalOptions"]
    wrong = options.findings(asking=list_asking_channels(channels), known={one.name for one in channels}, linked=linked)
    if isinstance(target, RequiresApprovals):
        found = target.approval_findings(list(options.rules), options.dynamic_names)
        wrong += [f"approvals: {finding}" for finding in found]
    elif options.rules or options.dynamic_names:
        wrong.append(_CANNOT_ASK.format(target.info.kind))
    return wrong


def list_chosen_rule_findings(rule: ApproverRule, channels: Iterable[Channel]) -> list[str]:
    """Return the findings for a rule that a function has chosen during a run, one line each.

    Claim roles are not checked for a linker: without anyone who has the claim there is no approver, and the run fails.
    """
    listed = list(channels)
    return [*rule.findings(list_asking_channels(listed), {channel.name for channel in listed})]


def list_asking_channels(channels: Iterable[Channel]) -> set[str]:
    """Return the names of the channels that can ask a person proactively."""
    return {channel.name for channel in channels if isinstance(channel, AsksApprovers) and can_push(channel)}
