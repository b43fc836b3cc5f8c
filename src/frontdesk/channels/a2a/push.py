"""Push notification configs of tasks. Each is a watcher of the chain of a task."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from frontdesk.channels.a2a.errors import PUSH_NOT_SUPPORTED, TASK_NOT_FOUND, ProtocolError, invalid
from frontdesk.channels.a2a.schema import (
    AuthenticationOut,
    PushConfigIn,
    PushConfigNameIn,
    PushConfigOut,
    PushConfigsOut,
)
from frontdesk.channels.a2a.tasks import Tasks
from frontdesk.errors import InvalidRequestError, NotFoundError, SealError, TooManyRequestsError
from frontdesk.identifiers import is_plain_id
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.identity import Caller
from frontdesk.models.run import RunChain
from frontdesk.models.watcher import RunWatcher

TOKEN_HEADER = "X-A2A-Notification-Token"  # noqa: S105 - the name of a header
MAX_SECRET_LENGTH = 4096
_ID, _SCHEME = "config_id", "scheme"


class PushConfigs:
    """The push configs of the callers of one channel."""

    def __init__(self, context: ChannelContext, tasks: Tasks, *, enabled: bool, most: int) -> None:
        """`most` is the number of configs of one task."""
        self._context, self._tasks, self._enabled, self._most = context, tasks, enabled, most

    def require(self) -> None:
        """Reject push configs if the channel has no push notifications."""
        if not self._enabled:
            raise ProtocolError(PUSH_NOT_SUPPORTED, "This agent does not send push notifications.")

    async def create(self, caller: Caller, given: PushConfigIn, tenant: str) -> PushConfigOut:
        self.require()
        if not given.task_id:
            raise invalid("taskId is required.", "taskId")
        check_config(given)
        return await self.add(caller, await self._tasks.find(caller, given.task_id, tenant), given)

    async def add(
        self, caller: Caller, chain: RunChain, given: PushConfigIn, *, comes_with_run: bool = False
    ) -> PushConfigOut:
        """Add a config to a task, or replace the one with its id.

        A config that comes with the message of a run receives the end of the run, however soon that is.
        """
        task_id = chain.root.run_id
        found = await self._context.runs.watchers(caller, task_id)
        same = [watcher for watcher in found if given.id and _get_id(watcher) == given.id]
        if len(found) - len(same) >= self._most:
            raise invalid(f"A task has at most {self._most} push notification configs. Delete one first.", "taskId")
        for watcher in same:
            await self._context.runs.unwatch(caller, task_id, watcher.watcher_id)
        metadata: dict[str, Any] = {_ID: given.id or self._context.new_id("push")}
        if given.authentication is not None:
            metadata[_SCHEME] = given.authentication.scheme
        watcher = RunWatcher(url=given.url or "", headers=_build_headers(given), metadata=metadata)
        try:
            await self._context.runs.watch(caller, task_id, watcher, includes_ended=comes_with_run)
        except InvalidRequestError as error:
            raise invalid(error.message, "url") from None
        except TooManyRequestsError as error:
            raise invalid(error.message, "taskId") from None
        except SealError:
            message = "This agent can't store credentials: it has no seal_key. Send a config without them."
            raise invalid(message, "authentication") from None
        return _shown(watcher, task_id)

    async def get(self, caller: Caller, given: PushConfigNameIn, tenant: str) -> PushConfigOut:
        self.require()
        chain, watcher = await self._find(caller, given, tenant)
        if watcher is None:
            raise ProtocolError(TASK_NOT_FOUND, "Push notification config not found.")
        return _shown(watcher, chain.root.run_id)

    async def list(self, caller: Caller, given: PushConfigNameIn, tenant: str) -> PushConfigsOut:
        self.require()
        chain = await self._tasks.find(caller, given.task_id, tenant)
        found = await self._context.runs.watchers(caller, chain.root.run_id)
        return PushConfigsOut(configs=[_shown(watcher, chain.root.run_id) for watcher in found])

    async def delete(self, caller: Caller, given: PushConfigNameIn, tenant: str) -> None:
        """Delete a config. Deleting it again has no effect."""
        self.require()
        chain, watcher = await self._find(caller, given, tenant)
        if watcher is None:
            return
        try:
            await self._context.runs.unwatch(caller, chain.root.run_id, watcher.watcher_id)
        except NotFoundError:
            return

    async def _find(self, caller: Caller, given: PushConfigNameIn, tenant: str) -> tuple[RunChain, RunWatcher | None]:
        if not given.id:
            raise invalid("id is required.", "id")
        chain = await self._tasks.find(caller, given.task_id, tenant)
        found = await self._context.runs.watchers(caller, chain.root.run_id)
        return chain, next((watcher for watcher in found if _get_id(watcher) == given.id), None)


def check_config(given: PushConfigIn) -> None:
    """Check a config before anything is run for it."""
    if not given.url:
        raise invalid("url is required.", "url")
    if given.id and not is_plain_id(given.id):
        raise invalid("id must be 1 to 256 letters, digits or any of . _ : -", "id")
    authentication = given.authentication
    if authentication is not None and not authentication.scheme:
        raise invalid("scheme is required.", "authentication.scheme")
    secrets = (given.token, None if authentication is None else authentication.credentials)
    for secret in secrets:
        if secret and (len(secret) > MAX_SECRET_LENGTH or not secret.isascii() or not secret.isprintable()):
            raise invalid("Tokens and credentials must be printable ASCII.", "authentication")
    if authentication is not None and not (authentication.scheme or "").replace("-", "").isalnum():
        raise invalid("scheme must be the name of an HTTP authentication scheme.", "authentication.scheme")


def _build_headers(given: PushConfigIn) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    if given.token:
        headers[TOKEN_HEADER] = given.token
    authentication = given.authentication
    if authentication is not None and authentication.credentials:
        headers["Authorization"] = f"{authentication.scheme} {authentication.credentials}"
    return headers


def _get_id(watcher: RunWatcher) -> str:
    return str(watcher.metadata.get(_ID) or watcher.watcher_id)


def _shown(watcher: RunWatcher, task_id: str) -> PushConfigOut:
    """Return a config without its secrets."""
    scheme: Any = watcher.metadata.get(_SCHEME)
    return PushConfigOut(
        id=_get_id(watcher),
        task_id=task_id,
        url=watcher.url,
        authentication=AuthenticationOut(scheme=scheme) if isinstance(scheme, str) else UNSET,
    )
