"""Tasks of callers who have to link their account first."""

from typing import Any, cast

from frontdesk.channels.a2a.parse import Sent
from frontdesk.channels.a2a.schema import (
    AUTH_REQUIRED,
    ROLE_AGENT,
    MessageOut,
    PartOut,
    StatusOut,
    TaskOut,
    format_time,
)
from frontdesk.errors import LinkRequiredError, RequestError
from frontdesk.identifiers import digest
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest, ChannelSession

LIFETIME_SECONDS = 900.0
_GOES_ON = "The task goes on after that."
_SEND_AGAIN = "Send the message again after that, with the taskId of this task."


class LinkTasks:
    """Shows the request of a caller who has to link as a task that waits for it. One for each caller at a time."""

    def __init__(self, context: ChannelContext) -> None:
        self._context = context
        self._values = context.storage.values("link_tasks", holds_tokens=False)

    async def begin(self, caller: Caller, sent: Sent, request: ChannelRequest, payload: Any) -> TaskOut:
        """Store a request until its caller is linked, if the host stores such requests. Return its task."""
        before = await self._read(caller)
        if before is not None and before.get("key") == sent.key:
            return self._task(before)
        task_id, context_id = self._context.new_id("task"), sent.context_id or self._context.new_id("ctx")
        stored = request.replace(
            run_id=task_id,
            idempotency_key=None,
            request_hash=None,
            background=True,
            stream=True,
            session=request.session or ChannelSession(key=context_id),
        )
        is_stored = False
        try:
            await self._context.submit(stored, caller, protocol_request=payload)
        except LinkRequiredError as error:
            is_stored = error.stored_run_id == task_id
        challenge = await self._context.links.begin(caller)
        at = self._context.now()
        record = {
            "key": sent.key,
            "task_id": task_id,
            "context_id": context_id,
            "tenant": sent.tenant,
            "at": at,
            "instructions": challenge.instructions,
            "url": challenge.url,
            "stored": is_stored,
        }
        await self._values.set(_name(caller), record, expires_at=at + LIFETIME_SECONDS)
        return self._task(record)

    async def find(self, caller: Caller, task_id: str | None, tenant: str, error: RequestError) -> TaskOut | None:
        """Return the task of a caller who is not linked yet, or None."""
        if not isinstance(error, LinkRequiredError):
            return None
        record = await self._read(caller)
        is_named = record is not None and record["task_id"] == task_id and record["tenant"] == tenant
        return self._task(record) if record is not None and is_named else None

    async def take(self, caller: Caller, task_id: str, tenant: str) -> str | None:
        """Return the context of a task whose request was not stored, so that its message can be sent again."""
        record = await self._read(caller)
        if record is None or record["task_id"] != task_id or record["tenant"] != tenant or record["stored"]:
            return None
        return str(record["context_id"])

    async def _read(self, caller: Caller) -> dict[str, Any] | None:
        found = await self._values.get(_name(caller))
        return None if found is None else cast("dict[str, Any]", found.value)

    def _task(self, record: dict[str, Any]) -> TaskOut:
        text = f"{record['instructions']}\n{_GOES_ON if record['stored'] else _SEND_AGAIN}"
        parts = [PartOut(text=text)]
        if record["url"]:
            parts.append(PartOut(url=record["url"]))
        task_id, context_id = record["task_id"], record["context_id"]
        message = MessageOut(
            message_id=f"status_{task_id}", context_id=context_id, task_id=task_id, role=ROLE_AGENT, parts=parts
        )
        status = StatusOut(state=AUTH_REQUIRED, message=message, timestamp=format_time(record["at"]))
        return TaskOut(id=task_id, context_id=context_id, status=status)


def _name(caller: Caller) -> str:
    return digest("\n".join(caller.identity.key))
