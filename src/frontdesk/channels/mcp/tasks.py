"""The wire format of the tasks extension (SEP-2663). A task is a chain of background runs. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY, CallToolResult, ElicitRequest, RequestParams

from frontdesk.models.run import RunChain

TASKS = "io.modelcontextprotocol/tasks"
POLL_INTERVAL_MS = 1_000
_STATUSES = {
    "queued": "working",
    "running": "working",
    "input_required": "input_required",
    "completed": "completed",
    "cancelled": "cancelled",
    # A call whose run did not complete has a result, which says that it is an error.
    "failed": "completed",
    "incomplete": "completed",
}


class TaskParams(RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class TaskUpdateParams(TaskParams):
    """The parameters of `tasks/update`."""

    input_responses: dict[str, Any]


def build_created_task(chain: RunChain) -> dict[str, Any]:
    """Return the result of a call that became a task."""
    return {"resultType": "task", **_fields(chain, _STATUSES[chain.status])}


def task(
    chain: RunChain,
    *,
    result: CallToolResult | None = None,
    asks: Mapping[str, ElicitRequest] | None = None,
    waits_for: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a task: with its result if it has ended, and with its questions to the client if there are any."""
    status = _STATUSES[chain.status]
    if status == "input_required" and not asks:
        # The client can't answer: other people are asked, on channels of their own.
        status = "working"
    out = _fields(chain, status)
    if waits_for:
        out["statusMessage"] = f"Waits for {', '.join(waits_for)}."
    if status == "completed" and result is not None:
        out["result"] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    if asks and status == "input_required":
        out["inputRequests"] = {
            name: request.model_dump(mode="json", by_alias=True, exclude_none=True) for name, request in asks.items()
        }
    return {"resultType": "complete", **out}


def _fields(chain: RunChain, status: str) -> dict[str, Any]:
    newest = chain.newest
    return {
        "taskId": chain.root.chain_id,
        "status": status,
        "createdAt": _time(chain.root.created_at),
        "lastUpdatedAt": _time(newest.finished_at or newest.created_at),
        # It is kept for as long as the operator keeps background runs after their end.
        "ttlMs": None,
        "pollIntervalMs": POLL_INTERVAL_MS,
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def build_missing_tasks_error(message: str) -> MCPError:
    """Return the error for a client that has not declared the tasks extension."""
    data: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)
