"""The channels and the time of each message of a history."""

from typing import Any

from agent_framework import Message

from frontdesk.ids import RandomIds, extract_time
from frontdesk.sessions.session_list import as_transcript

FIRST, SECOND = RandomIds().new("msg"), RandomIds().new("msg")


def message(role: Any, message_id: str | None = None, **hosting: Any) -> Message:
    return Message(role, ["text"], message_id=message_id, additional_properties={"hosting": hosting} if hosting else {})


def test_a_turn_has_the_time_of_its_question_and_the_channels_to_which_it_went() -> None:
    there = [{"channel": "web", "native_id": "v"}]
    noted = as_transcript(
        [
            message("assistant", "theirs"),
            message("user", FIRST, channel="chat", response_target={"echo_input": False}),
            message("assistant", originating_channel="chat", includes_originating=True, intended_targets=[]),
            message("user", SECOND, channel="chat", response_target={"echo_input": True}),
            message("assistant", originating_channel="chat", includes_originating=False, intended_targets=there),
            message("user", "msg_from a client", channel="chat"),
        ]
    )
    first, second = extract_time(FIRST, "msg"), extract_time(SECOND, "msg")
    assert [said.at for said in noted] == [None, first, first, second, second, second]
    assert [said.channel for said in noted] == [None] + ["chat"] * 5
    assert [sorted(said.shown_on) for said in noted] == [[], ["chat"], ["chat"], ["chat", "web"], ["web"], ["chat"]]


def test_the_time_of_an_id_that_is_not_ours_is_unknown() -> None:
    for given in ("", "msg_", "msg_0192f0c1a2b3", f"run{FIRST[3:]}", FIRST.upper(), f"{FIRST}0"):
        assert extract_time(given, "msg") is None
