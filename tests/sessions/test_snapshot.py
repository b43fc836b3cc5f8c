"""The state of a session is written once it has something in it, and weighed once if it is small."""

from typing import Any

import pytest
from agent_framework import AgentSession

from frontdesk.errors import SessionTooLargeError
from frontdesk.sessions import snapshot
from frontdesk.sessions.snapshot import Snapshots, is_blank


@pytest.mark.parametrize(
    ("state", "blank"),
    [({}, True), ({"in_memory": {}}, True), ({"in_memory": {"a": 1}}, False), ({"mine": {}}, False)],
)
def test_a_state_that_has_only_the_empty_place_of_the_history_is_blank(state: dict[str, Any], blank: bool) -> None:
    session = AgentSession(session_id="ses_1")
    session.state.update(state)
    assert is_blank(session) is blank


async def test_a_small_state_is_weighed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[int] = []
    weigh = snapshot.compute_weight

    def count(value: Any, most: int) -> int:
        weighed.append(most)
        return weigh(value, most)

    monkeypatch.setattr(snapshot, "compute_weight", count)
    session = AgentSession(session_id="ses_1")
    session.state["mine"] = {"text": "x" * 100}
    assert (await Snapshots().take(session))["state"] == session.state
    assert not weighed
    with pytest.raises(SessionTooLargeError):
        await Snapshots(50).take(session)
    assert weighed == [50]
