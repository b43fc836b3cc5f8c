"""Decides how runs end: attaches runs to errors, finds runs to repeat, and builds the results of streams."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from agent_framework import AgentResponse, WorkflowRunResult

from frontdesk.errors import RequestError, RunExistsError, UnreadableRecordError
from frontdesk.framework.types import list_updates
from frontdesk.models.approval import ANSWERED
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import RunFailure, RunRecord
from frontdesk.sessions.turn import Turn


def is_redone(turn: Turn) -> bool:
    """Return True if a turn has done nothing yet and will be restarted by the worker that claims it."""
    if turn.job is not None:
        return turn.job.guarded and not turn.held
    return turn.event is not None and turn.answering is not None and turn.answering.failure is not None


def is_refusal(error: RequestError) -> bool:
    """Return True if a request was rejected before any work, so that a retry is rejected likewise.

    Its history cannot be read, or another request has used its id or answered the same question.
    """
    return isinstance(error, (UnreadableRecordError, RunExistsError)) or error.code == ANSWERED


def attach_run(error: RequestError, record: RunRecord) -> None:
    """Attach the run to a retryable error: the target was called, and a retry would call it again."""
    is_retried = error.status >= 500 or error.status in (408, 409, 429)
    if error.run is None and is_retried and not is_refusal(error):
        error.run = record.replace(status="failed", failure=RunFailure(code=error.code, message=error.message))


def build_ended_stream(result: HostedRunResult[Any]) -> HostedStreamResult[Any]:
    return _build_stream([], result)


def build_replayed_stream(result: HostedRunResult[Any]) -> HostedStreamResult[Any]:
    """Return the stream of a run with its whole output as one update."""
    return _build_stream(list_updates(result.result), result)


def _build_stream(said: Sequence[Any], result: HostedRunResult[Any]) -> HostedStreamResult[Any]:
    async def updates() -> AsyncGenerator[Any, None]:
        for update in said:
            yield update

    async def close() -> None:
        return

    return HostedStreamResult(result.run, updates(), [result], close)


def result_of_updates(shown: list[Any], result: Any) -> Any:
    """Return the result of the updates that passed the hook, without content that the hook has hidden."""
    if isinstance(result, AgentResponse):
        return AgentResponse.from_updates(shown)
    if isinstance(result, WorkflowRunResult):
        return WorkflowRunResult(shown, result.status_timeline())
    return result
