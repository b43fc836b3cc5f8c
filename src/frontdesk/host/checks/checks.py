"""What can be known to be wrong before anything runs: all of it, in one error."""

from collections.abc import Sequence
from typing import Any

from frontdesk.abc.channel import Channel, ChannelPush, ChannelPushCodec
from frontdesk.abc.push import PushesParts
from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.abc.store import HostStateStore
from frontdesk.abc.target import TargetInfo
from frontdesk.data.json_tree import refusal
from frontdesk.host.config import HostConfig, RuntimeMode, is_public
from frontdesk.runners.base import TaskRunner


def push_findings(channels: Sequence[Any], target: TargetInfo) -> list[str]:
    """What waits to be sent is JSON: a channel that is given whole results needs a form for all that is in them."""
    whole = [
        one for one in channels if isinstance(one, ChannelPush) and not isinstance(one, (ChannelPushCodec, PushesParts))
    ]
    wrong = [error for error in map(refusal, target.outputs) if error is not None]
    return [
        f"channel {getattr(one, 'name', '')!r}: what the target puts out can't be kept until it is sent: {error}, or "
        "give the channel encode_push and decode_push"
        for one in whole
        for error in wrong
    ]


def history_findings(chosen: Any, target: TargetInfo) -> list[str]:
    """Find a choice of who keeps the history that means nothing."""
    if chosen is None:
        return []
    if chosen not in ("host", "agent"):
        return [f"history: {chosen!r} is not 'host' or 'agent'"]
    if target.kind == "agent":
        return []
    return [f"history has no effect: the target is of kind {target.kind!r}, and only of an agent it is the question"]


def interrupt_findings(config: HostConfig, target: TargetInfo) -> list[str]:
    """What a target can't do when it is interrupted."""
    if config.on_interrupt != "resume" or target.kind == "workflow":
        return []
    return [f"on_interrupt: only a workflow can resume, and the target is of kind {target.kind!r}"]


def runtime_findings(mode: RuntimeMode, how: str, runner: DurableTaskRunner | None, config: HostConfig) -> list[str]:
    """A process that may be gone after each request can't keep work for later."""
    if config.allow_in_process_runner or not runtime_warnings(mode, runner):
        return []
    return [
        f"runtime_mode is 'ephemeral' ({how}) and there is no durable runner: background work would be lost; "
        "pass runner=, or allow_in_process_runner=True to accept that"
    ]


def runner_findings(runner: DurableTaskRunner | None, store: HostStateStore | None) -> list[str]:
    """A runner of ours works on the rows of its store, and those are the host's."""
    if isinstance(runner, TaskRunner) and runner.store is not store:
        return ["runner: it works on another store than the host; give both the same store="]
    return []


def worker_findings(store: HostStateStore) -> list[str]:
    """A process beside the host needs a store that both can use."""
    if store.lease_seconds is not None:
        return []
    return ["store: a worker needs one that many processes can use at once, such as PostgresStateStore"]


def runtime_warnings(mode: RuntimeMode, runner: DurableTaskRunner | None) -> list[str]:
    """What such a process loses all the same, where that was accepted."""
    if mode != "ephemeral" or (runner is not None and runner.durable and not runner.in_process):
        return []
    return ["background work is lost when this process ends (allow_in_process_runner=True)"]


def bind_findings(address: str, channels: Sequence[Channel], config: HostConfig) -> list[str]:
    """Nobody opens a door to the world by accident."""
    if not is_public(address) or config.allow_anonymous:
        return []
    return [
        f"channel {one.name!r}: {address} can be reached by other machines, and the channel has no auth=; "
        "add it, bind to 127.0.0.1, or set allow_anonymous=True on the host"
        for one in channels
        if one.takes_http and one.auth is None
    ]
