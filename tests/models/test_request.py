"""What the gate has decided about an admitted request stays decided."""

from typing import Any

import pytest

from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.reply import ResponseTarget
from tests.sessions.admitted import build_admitted


def test_an_admitted_request_is_not_copied_with_other_fields() -> None:
    request: Any = build_admitted()
    with pytest.raises(TypeError, match="with_request"):
        request.replace(owner="bob")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("identity", ChannelIdentity(channel="web", native_id="bob")),
        ("channel", "chat"),
        ("response_target", ResponseTarget.all_linked),
        ("store", False),
        ("run_id", "run_of_bob"),
    ],
)
def test_what_the_gate_decides_about_is_not_changed_behind_it(field: str, value: Any) -> None:
    with pytest.raises(TypeError, match=field):
        build_admitted().with_request(**{field: value})


def test_steps_behind_the_gate_change_how_a_request_runs() -> None:
    before = build_admitted(stream=True)
    after = before.with_request(background=True, stream=False)
    assert (after.request.background, after.request.stream) == (True, False)
    assert (after.owner, after.identity, after.run_id) == (before.owner, before.identity, before.run_id)
    assert not before.pushes
    assert before.with_push().pushes
