"""Connects operators' commands to a running host by its socket, or to the store itself."""

import asyncio
from argparse import Namespace
from collections.abc import Coroutine, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

from frontdesk.admin.actions import AdminParts
from frontdesk.admin.client import OperatorClient
from frontdesk.admin.service import AdminService
from frontdesk.admin.socket_file import SOCKET
from frontdesk.cli.state_paths import locate, store_at
from frontdesk.cli.terminal import CommandError
from frontdesk.clock import SystemClock
from frontdesk.errors import OperatorError, RequestError
from frontdesk.ids import RandomIds

Where = Literal["host", "shared", "alone"]
"""The source: a running host, a store that hosts may use meanwhile, or one that no host uses."""
NOT_FOUND, REFUSED = 3, 4
_CODES = {"not_found": NOT_FOUND}
_CONFLICTS = ("changed", "not_cancellable", "not_pending", "not_ended", "nothing_to_send", "not_droppable", "ambiguous")


class AdminClient(Protocol):
    where: Where

    def call(self, name: str, given: Mapping[str, Any]) -> Any:
        """Send a request. Raises `CommandError` if it is rejected."""
        ...


@contextmanager
def open_client(arguments: Namespace) -> Generator[AdminClient]:
    """Yield the backend for the state that the command line names."""
    if arguments.socket is not None:
        remote = _connect(Path(arguments.socket).absolute())
        if remote is None:
            raise CommandError(f"--socket: no host listens on {arguments.socket}")
        with remote:
            yield SocketAdminClient(remote)
        return
    place = locate("--state", arguments.state, arguments.state_env)
    remote = _connect(place.resolve().parent / SOCKET) if isinstance(place, Path) else None
    if remote is not None and isinstance(place, Path):
        with remote:
            yield _of_this_state(SocketAdminClient(remote), place)
        return
    with store_at(place) as store, asyncio.Runner() as runner:
        runner.run(store.open())
        try:
            parts = AdminParts.of_store(store, SystemClock(), RandomIds())
            yield StoreAdminClient(AdminService(parts), runner, "shared" if isinstance(place, str) else "alone")
        finally:
            runner.run(store.close())


class StoreAdminClient:
    def __init__(self, client: AdminService, runner: asyncio.Runner, where: Where) -> None:
        self._desk = client
        self._runner = runner
        self.where: Where = where

    def call(self, name: str, given: Mapping[str, Any]) -> Any:
        return self._runner.run(_answer(self._desk.call(name, given)))


async def _answer(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except RequestError as error:
        raise refusal(error.code, error.message) from None


class SocketAdminClient:
    where: Where = "host"

    def __init__(self, client: OperatorClient) -> None:
        self._client = client

    def call(self, name: str, given: Mapping[str, Any]) -> Any:
        try:
            return self._client.call(name, given)
        except OperatorError as error:
            raise refusal(error.code, str(error)) from None


def _connect(path: Path) -> OperatorClient | None:
    try:
        return OperatorClient(path)
    except OperatorError as error:
        if error.code == "no_host":
            return None
        raise CommandError(str(error)) from None


def _of_this_state(client: SocketAdminClient, place: Path) -> SocketAdminClient:
    """Reject a host that uses the directory for another file."""
    path = client.call("state", {})["path"]
    if path is not None and Path(path) != place.resolve():
        raise CommandError(f"--state: the host running in {place.resolve().parent} uses the state {path}")
    return client


def refusal(code: str, message: str) -> CommandError:
    """Return the error of a rejected request, with the matching exit code."""
    return CommandError(message, exit_code=REFUSED if code in _CONFLICTS else _CODES.get(code, 1))
