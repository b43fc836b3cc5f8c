"""Decide how runs end: which errors carry their run, which runs are begun again, and what ended streams contain."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from agent_framework import AgentResponse, WorkflowRunResult

from frontdesk.data.approval import ANSWERED
from frontdesk.data.result import HostedRunResult, HostedStreamResult
from frontdesk.data.run import RunFailure, RunRecord
from frontdesk.errors import RequestError, RunExistsError, UnreadableRecordError
from frontdesk.kit.framework.types import updates_of
from frontdesk.sessions.turn import Turn


def is_redone(turn: Turn) -> bool:
    """Tell whether a turn has done nothing yet, and is begun again by the worker that claims it."""
    if turn.job is not None:
        return turn.job.guarded and not turn.held
    return turn.event is not None and turn.answering is not None and turn.answering.failure is not None


def is_refusal(error: RequestError) -> bool:
    """Tell whether a request was refused before anything was done for it, so that a retry is refused in the same way.

    Its history can't be read, or another request has used its id or has answered the same question.
    """
    return isinstance(error, (UnreadableRecordError, RunExistsError)) or error.code == ANSWERED


def attach_run(error: RequestError, record: RunRecord) -> None:
    """Attach the run to an error that a client would retry: the target was called, and would be called once more."""
    is_retried = error.status >= 500 or error.status in (408, 409, 429)
    if error.run is None and is_retried and not is_refusal(error):
        error.run = record.replace(status="failed", failure=RunFailure(code=error.code, message=error.message))


def ended_stream(result: HostedRunResult[Any]) -> HostedStreamResult[Any]:
    """Return the stream of a run that has ended: no updates, and the result."""
    return _stream_of([], result)


def replayed_stream(result: HostedRunResult[Any]) -> HostedStreamResult[Any]:
    """Return the stream of a run that has said everything at once."""
    return _stream_of(updates_of(result.result), result)


def _stream_of(said: Sequence[Any], result: HostedRunResult[Any]) -> HostedStreamResult[Any]:
    async def updates() -> AsyncGenerator[Any, None]:
        for update in said:
            yield update

    async def close() -> None:
        return

    return HostedStreamResult(result.run, updates(), [result], close)


def result_of_updates(shown: list[Any], result: Any) -> Any:
    """Return the result made of the updates that the hook has shown, so that it contains nothing that it has hidden."""
    if isinstance(result, AgentResponse):
        return AgentResponse.from_updates(shown)
    if isinstance(result, WorkflowRunResult):
        return WorkflowRunResult(shown, result.status_timeline())
    return result
