"""Going out: platforms that refuse, lose, flood and forget."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.interfaces.chat import PushTerms
from frontdesk.interfaces.runner import RetryPolicy
from frontdesk.markdown.plain_text import split_text
from frontdesk.models.identity import ChannelIdentity
from frontdesk_testing.messages import LookupMessageChannel
from frontdesk_testing.messages.platform.faults import FaultKind
from tests.scenarios.delivery.house import QUICK, ChatHost, open_house
from tests.scenarios.desk import until

ANN = ChannelIdentity(channel="chat", native_id="ann")
SLOW_TO_TELL = PushTerms(retry=RetryPolicy(attempts=3, first_delay=0.02, longest_delay=0.1), timeout=0.5)


async def tell(house: ChatHost, *texts: str) -> list[str]:
    """Says things to Ann; returns the ids of what was sent."""
    return [one.delivery_id for text in texts for one in await house.host.deliver(ANN, text)]


@pytest.mark.parametrize(
    "fault", ["error", "unavailable", "cut_before", "cut_after", "timeout_before", "timeout_after"]
)
async def test_sent_is_recorded_only_for_what_has_arrived(tmp_path: Path, fault: FaultKind) -> None:
    async with open_house(tmp_path, terms=SLOW_TO_TELL, idempotent=False) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        await house.platforms["chat"].set(dedupe=False)
        await house.platforms["chat"].fail(fault, method="send", times=1, seconds=5)
        sent = await tell(house, "one", "two")
        ended = {one.delivery_id: one for one in await house.wait_for_ends("chat")}
        arrived = await house.platforms["chat"].answers(ann.chat_id)
        # What is called accepted is there, under the receipt that the platform gave.
        accepted = {one.receipt for one in ended.values() if one.status == "accepted"}
        assert accepted <= {one.message_id for one in arrived}
        # What is there twice, or was repeated in doubt, is nothing: in doubt it is unknown.
        texts = [one.text for one in arrived]
        assert len(texts) == len(set(texts))
        first = ended[sent[0]]
        assert first.status == ("accepted" if fault in ("error", "unavailable") else "unknown")
        assert ended[sent[1]].status == "accepted"


@pytest.mark.parametrize("fault", ["cut_before", "cut_after", "timeout_before", "timeout_after"])
async def test_a_state_of_unknown_is_looked_at_again(
    tmp_path: Path, fault: FaultKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.scenarios.delivery.house.MessageChannel", LookupMessageChannel)
    async with open_house(tmp_path, terms=SLOW_TO_TELL, idempotent=False) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        await house.platforms["chat"].fail(fault, method="send", times=1, seconds=5)
        sent = await tell(house, "one", "two")
        ended = {one.delivery_id: one for one in await house.wait_for_ends("chat")}
        assert {one.status for one in ended.values()} == {"accepted"}
        arrived = await house.platforms["chat"].answers(ann.chat_id)
        assert [one.text for one in arrived] == ["one", "two"]
        assert ended[sent[0]].receipt == arrived[0].message_id
        codes = [one.code for one in ended[sent[0]].history]
        assert codes[-1] == ("found" if fault.endswith("after") else "accepted")
        assert ("not found" in codes) is fault.endswith("before")


async def test_what_stays_unknown_is_counted_and_can_be_settled(tmp_path: Path) -> None:
    async with open_house(tmp_path, idempotent=False) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        await house.platforms["chat"].fail("cut_before", method="send", times=1)
        (sent,) = await tell(house, "one")
        await house.wait_for_ends("chat", "unknown")
        assert await house.host.deliveries.counts() == {"unknown": 1}
        assert [one.delivery_id for one in await house.host.deliveries.list(status="unknown")] == [sent]
        await house.host.deliveries.retry(sent)
        assert await house.wait_for_answers("chat", ann, 1) == ["one"]


async def test_the_flood_wait_is_obeyed_and_nothing_is_cut(tmp_path: Path) -> None:
    async with open_house(tmp_path, terms=QUICK, text_limit=50) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        # More often than the budget has attempts: it is a wait, and no failure.
        await house.platforms["chat"].fail("flood", method="send", skip=3, times=6, retry_after=0.05)
        text = " ".join(f"word{number:03}" for number in range(100))
        sent = await tell(house, text)
        said = await house.wait_for_answers("chat", ann, len(sent))
        assert " ".join(one.strip() for one in said) == text
        accepted = await house.wait_for_ends("chat", "accepted")
        assert len(accepted) == len(sent)
        waited = [one for one in accepted if len(one.history) > 1]
        for one in waited:
            times = [entry.at for entry in one.history]
            assert all(second - first >= 0.05 for first, second in itertools.pairwise(times))


async def test_a_blocked_destination_is_not_tried_again_and_delays_nobody(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        ben = await house.platforms["chat"].user("Ben", user_id="ben")
        await house.platforms["chat"].user("Ann", user_id="ann")
        await house.platforms["chat"].fail("blocked", method="send", user_id="ann")
        await tell(house, "one")
        await house.host.deliver(ANN.replace(native_id="ben"), "two")
        assert await house.wait_for_answers("chat", ben, 1) == ["two"]
        (dead,) = await house.wait_for_ends("chat", "dead")
        assert (dead.error, dead.attempts) == ("blocked", 1)
        assert (await house.platforms["chat"].state()).struck == (1,)


async def test_the_answer_to_one_message_is_not_the_reply_to_the_next(tmp_path: Path) -> None:
    """The last answer was late, and was sent as the reply to a new message."""
    async with open_house(tmp_path) as house:
        platform = house.platforms["chat"]
        ann = await platform.user("Ann", user_id="ann")
        ben = await platform.user("Ben", user_id="ben")
        group = await platform.group("Lobby", ann, ben)
        await platform.fail("unavailable", method="send", times=2)
        first = await platform.say(ann, "@desk one", chat_id=group.chat_id)
        second = await platform.say(ann, "@desk two", chat_id=group.chat_id)
        third = await platform.say(ben, "@desk three", chat_id=group.chat_id)
        said = {one.text: one for one in await platform.wait_for_answers(group.chat_id, 3)}
        asked = {"one": first.message, "two": second.message, "three": third.message}
        for word, message in asked.items():
            assert message is not None
            (reply,) = [one for text, one in said.items() if text.endswith(word)]
            assert reply.reply_to in ("", message.message_id)

        async def all_ended() -> bool:
            found = await house.host.deliveries.list()
            return len(found) == 3 and all(one.status == "accepted" for one in found)

        await until(all_ended)
        runs = [one.run_id for one in await house.host.deliveries.list()]
        assert len(set(runs)) == 3


pieces = st.sampled_from(
    ["word ", "```py\ncode\n```\n", "\n", "\n\n", "é", "👩‍👩‍👧 ", "**bold** ", "a" * 30, "[x](y) "]
)


@given(st.lists(pieces, max_size=60).map("".join), st.integers(20, 80))
def test_text_over_the_limit_is_split_so_that_nothing_is_doubled_or_lost(text: str, limit: int) -> None:
    parts = split_text(text, limit)
    assert all(len(one) <= limit for one in parts)
    bare = "".join(parts).replace("```py", "").replace("```", "")
    assert "".join(bare.split()) == "".join(text.replace("```py", "").replace("```", "").split())
