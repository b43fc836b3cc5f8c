"""Unlinking left the leaver's open questions answerable by whoever kept the conversation."""

import asyncio
from typing import Any

import pytest

from frontdesk.errors import ConflictError, NotFoundError, RequestError, UnlinkedError
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import LinkProof
from frontdesk.models.request import ChannelRequest
from frontdesk_testing.internals import get_components, get_store
from tests.host.link_door import Loud, open_host
from tests.scenarios.asking import Clerk


async def link(host: Any) -> None:
    """Ann on red, who is ann2 on blue, is one person, with the conversation of red."""
    ann, ann2 = (
        ChannelIdentity(channel=channel, native_id=name) for channel, name in (("red", "ann"), ("blue", "ann2"))
    )
    links = get_components(host).links
    assert links is not None
    await links.join(LinkProof(linker="test", identity=ann2, survivor=ann))


async def say_yes(channel: Loud, name: str) -> Any:
    """Say yes to the only question that anybody was asked; to a made up one, if nobody was."""
    store: Any = get_store(channel.context)
    asked = [approval_id for (_, approval_id), _ in store.approvals.records.items()]
    answer = ApprovalAnswer(approval_id=asked[0] if asked else "apr_none", approved=True)
    request = await channel.context.approvals.build_request(channel.by(name), [answer])
    return await channel.context.run(request, channel.by(name))


async def ask(channel: Loud, name: str, text: str) -> Any:
    return await channel.context.run(ChannelRequest(channel=channel.name, input=text), channel.by(name))


@pytest.mark.parametrize("leaver", ["red", "blue"])
@pytest.mark.parametrize("asker", ["red", "blue"])
async def test_neither_side_answers_a_question_of_the_other_after_an_unlink(asker: str, leaver: str) -> None:
    clerk = Clerk("q")
    sides = {"red": (Loud("red"), "ann"), "blue": (Loud("blue"), "ann2")}
    async with open_host([channel for channel, _ in sides.values()], target=clerk.answer) as host:
        await link(host)
        await ask(*sides[asker], "pay 5")
        channel, name = sides[leaver]
        assert str(await channel.says(name, "/unlink")).startswith("This account is no longer linked.")
        for channel, name in sides.values():
            assert list(await channel.context.approvals.pending(channel.by(name))) == []
            with pytest.raises((NotFoundError, ConflictError)):
                await say_yes(channel, name)
        assert clerk.paid == []


@pytest.mark.parametrize("leaver", ["red", "blue"])
async def test_a_turn_that_asks_after_an_unlink_leaves_no_question_to_the_other(leaver: str) -> None:
    clerk = Clerk("q")
    red, blue = Loud("red"), Loud("blue")
    async with open_host([red, blue], target=clerk.answer) as host:
        await link(host)
        clerk.go_on.clear()
        turn = asyncio.create_task(ask(blue, "ann2", "pay 5"))
        await clerk.began.wait()
        channel, name = (red, "ann") if leaver == "red" else (blue, "ann2")
        assert str(await channel.says(name, "/unlink")).startswith("This account is no longer linked.")
        clerk.go_on.set()
        with pytest.raises(UnlinkedError):
            await turn
        for channel, name in ((red, "ann"), (blue, "ann2")):
            assert list(await channel.context.approvals.pending(channel.by(name))) == []
            with pytest.raises(RequestError):
                await say_yes(channel, name)
        assert clerk.paid == []


async def test_who_keeps_the_conversation_is_asked_and_answers_whoever_leaves_meanwhile() -> None:
    clerk = Clerk("q")
    red, blue = Loud("red"), Loud("blue")
    async with open_host([red, blue], target=clerk.answer) as host:
        await link(host)
        clerk.go_on.clear()
        turn = asyncio.create_task(ask(red, "ann", "pay 5"))
        await clerk.began.wait()
        await blue.says("ann2", "/unlink")
        clerk.go_on.set()
        await turn
        assert [one.target_id for one in await red.context.approvals.pending(red.by("ann"))] == ["q"]
        await say_yes(red, "ann")
        assert clerk.paid == [5]
        with pytest.raises(NotFoundError):
            await say_yes(blue, "ann2")


async def test_an_unlink_between_the_look_and_the_commit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    clerk = Clerk("q")
    red, blue = Loud("red"), Loud("blue")
    async with open_host([red, blue], target=clerk.answer) as host:
        await link(host)
        plain = get_components(host).gate.requester
        seen: list[Any] = []

        async def requester(admitted: Any) -> Any:
            record = await plain(admitted)
            seen.append(record)
            if len(seen) == 1:
                await blue.says("ann2", "/unlink")
            return record

        monkeypatch.setattr(get_components(host).gate, "requester", requester)
        with pytest.raises(UnlinkedError):
            await ask(blue, "ann2", "pay 5")
        assert len(seen) == 1
        assert list(await red.context.approvals.pending(red.by("ann"))) == []
