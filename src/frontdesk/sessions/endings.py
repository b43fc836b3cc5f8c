"""How runs end: what is told of one that failed, which are begun again, and the streams of those that have ended."""

from collections.abc import AsyncGenerator
from typing import Any

from agent_framework import AgentResponse, WorkflowRunResult

from frontdesk.data.approval import ANSWERED
from frontdesk.data.result import HostedRunResult, HostedStreamResult
from frontdesk.data.run import RunFailure, RunRecord
from frontdesk.errors import RequestError, RunExistsError, UnreadableRecordError
from frontdesk.sessions.turn import Turn


def is_redone(turn: Turn) -> bool:
    """Whether a turn has done nothing yet, and is begun again by whoever takes it up."""
    if turn.job is not None:
        return turn.job.guarded and not turn.held
    return turn.event is not None and turn.answering is not None and turn.answering.failure is not None


def is_refusal(error: RequestError) -> bool:
    """Tell whether nothing was done for a request, so that it may be tried again: it is refused then as it was now.

    Its history can't be read, or it is the second of two with one id, or with one answer to a question.
    """
    return isinstance(error, (UnreadableRecordError, RunExistsError)) or error.code == ANSWERED


def tell_of_run(error: RequestError, record: RunRecord) -> None:
    """Gives an error its run, if a client would try again: the target was asked, and would be asked once more."""
    again = error.status >= 500 or error.status in (408, 409, 429)
    if error.run is None and again and not is_refusal(error):
        error.run = record.replace(status="failed", failure=RunFailure(code=error.code, message=error.message))


def ended_stream(result: HostedRunResult[Any]) -> HostedStreamResult[Any]:
    """The stream of a run that has nothing more to tell."""

    async def nothing() -> AsyncGenerator[Any, None]:
        return
        yield

    async def close() -> None:
        return

    return HostedStreamResult(result.run, nothing(), [result], close)


def joined(shown: list[Any], result: Any) -> Any:
    """The result as the hook has shown it, so that the end of a stream tells nothing that its updates did not."""
    if isinstance(result, AgentResponse):
        return AgentResponse.from_updates(shown)
    if isinstance(result, WorkflowRunResult):
        return WorkflowRunResult(shown, result.status_timeline())
    return result
