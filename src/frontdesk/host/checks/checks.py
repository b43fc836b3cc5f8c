"""Finds mistakes before the host runs; all of them are reported in one error."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frontdesk.abc.channel import Channel, ChannelPush, ChannelPushCodec
from frontdesk.abc.push import PushesParts
from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.abc.store import HostStateStore
from frontdesk.abc.target import TargetInfo
from frontdesk.admin.socket_server import path_findings
from frontdesk.data.json_tree import refusal
from frontdesk.host.config import AdminSocketPlace, HostConfig, RuntimeMode, is_public
from frontdesk.runners.base import TaskRunner


def push_findings(channels: Sequence[Any], target: TargetInfo) -> list[str]:
    """Find push channels that take whole results which have no JSON form, and can't wait to be sent."""
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
    """Find channels that keep tokens of their platform on a host that can't encrypt them."""
    return [
        f"channel {channel.name!r}: it keeps tokens of its platform, which are stored only encrypted; "
        "give the host a seal_key="
        for channel in channels
        if channel.needs_seal_key and not has_key
    ]


def socket_findings(place: AdminSocketPlace, store: HostStateStore | None, database: Path | None) -> list[str]:
    """Find a place for the socket of operators that is none."""
    if isinstance(place, (str, Path)):
        return [f"admin_socket: {finding}" for finding in path_findings(Path(place).absolute())]
    has_directory = database is not None or (store is not None and store.directory is not None)
    if place is not True or has_directory:
        return []
    return ["admin_socket=True: there is no state directory to put it in; give it a path"]


def history_findings(chosen: Any, target: TargetInfo) -> list[str]:
    """Find a choice of who keeps the history that has no effect."""
    if chosen is None:
        return []
    if chosen not in ("host", "agent"):
        return [f"history: {chosen!r} is not 'host' or 'agent'"]
    if target.kind == "agent":
        return []
    return [f"history has no effect: the target is of kind {target.kind!r}, and only an agent has the choice"]


def interrupt_findings(config: HostConfig, target: TargetInfo) -> list[str]:
    """Find a choice of what follows an interruption that the target does not support."""
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
    """Warn of what an ephemeral process loses, where the operator has accepted that."""
    if mode != "ephemeral" or (runner is not None and runner.durable and not runner.in_process):
        return []
    return ["background work is lost when this process ends (allow_in_process_runner=True)"]


def memory_warnings(mode: RuntimeMode, store: HostStateStore) -> list[str]:
    """Warn of a state that ends with an ephemeral process."""
    if mode != "ephemeral" or store.durable:
        return []
    return ["the state is in memory, and lost when this ephemeral process ends: set state_dir= or store="]


def polling_warnings(mode: RuntimeMode, channels: Sequence[Channel]) -> list[str]:
    """Warn of channels whose events come only while this process runs, where it ends between requests."""
    if mode != "ephemeral":
        return []
    return [
        f"channel {channel.name!r}: events are fetched only while this process runs, and it is ephemeral; use a webhook"
        for channel in channels
        if channel.fetches_events
    ]


def bind_findings(address: str, channels: Sequence[Channel], config: HostConfig) -> list[str]:
    """Find channels that strangers could reach without credentials."""
    if not is_public(address) or config.allow_anonymous:
        return []
    return [
        f"channel {channel.name!r}: {address} can be reached by other machines, and {_unguarded(channel)}"
        "bind to 127.0.0.1, or set allow_anonymous=True on the host"
        for channel in channels
        if channel.takes_http and channel.auth is None
    ]


def _unguarded(channel: Channel) -> str:
    """Return why a channel lets in strangers, and what else could be done about it."""
    return "lets in every visitor; " if channel.tells_callers_apart else "the channel has no auth=; add it, "
