"""Tokens with which an event can be answered: stored only encrypted, used while they last, and shown to nobody."""

import logging
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, ChannelCommand, ChannelConfigurationError, ChannelRequest, Reply
from frontdesk.auth.sealing import Sealer
from frontdesk.channel_storage.values import ReplyTokens
from frontdesk.errors import SealError
from frontdesk.secret import Secret
from frontdesk.serialization.codec import decode, encode
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import EchoAgent, FakeClock
from frontdesk_testing.store_samples import inbox_item
from tests.faults.inbox.desk import SECRET
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import MessagesHost, open_chat

KEY = "0123456789abcdef0123456789abcdef"


async def _whisper(call: Any) -> None:
    await call.reply(Reply("for you", to="only_me"))


COMMANDS = [ChannelCommand("whisper", "Whisper", _whisper)]


async def _ask_in_a_group(chat: MessagesHost) -> tuple[Any, str, Any]:
    ada = await chat.platform.user("Ada")
    group = (await chat.platform.group("Friends", ada)).chat_id
    return ada, group, await chat.platform.say(ada, "/whisper@desk", chat_id=group)


async def test_a_reply_for_one_person_is_shown_in_the_group_to_them_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    database, seen = tmp_path / "state.db", list[Any]()

    def hook(request: ChannelRequest, **given: Any) -> ChannelRequest:
        seen.append(given["protocol_request"])
        return request

    settings = {"store": SqliteStateStore(database), "seal_key": KEY, "private_replies": True, "run_hook": hook}
    async with open_chat(EchoAgent(), commands=COMMANDS, **settings) as chat:
        await chat.platform.set(token_seconds=60.0)
        ada, group, event = await _ask_in_a_group(chat)

        async def shown() -> bool:
            return bool((await chat.platform.state()).private)

        await chat.platform.until(shown)
        (private,) = (await chat.platform.state()).private
        assert (private.chat_id, private.user_id, private.text) == (group, ada.user_id, "for you")
        assert await chat.platform.answers(group) == await chat.platform.answers(ada.chat_id) == []
        await chat.platform.say(ada, "hello")
        assert await chat.wait_for_answers(ada.chat_id) == ["hello"]
    assert event.reply_token
    assert event.reply_token.encode() not in _read_stored(tmp_path)
    assert event.reply_token not in caplog.text
    assert [shown["reply_token"] for shown in seen] == [""]


def _read_stored(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.glob("state.db*"))


async def test_a_token_that_has_expired_is_not_used_and_the_reply_is_a_dead_letter() -> None:
    settings = {"seal_key": KEY, "private_replies": True, "token_seconds": 1e-6}
    async with open_chat(EchoAgent(), commands=COMMANDS, **settings) as chat:
        await chat.platform.set(token_seconds=60.0)
        await _ask_in_a_group(chat)
        await until(lambda: _died_of(chat, "token_expired"))
        assert (await chat.platform.state()).private == ()


async def _died_of(chat: MessagesHost, reason: str) -> bool:
    return [row.error for row in await chat.host.deliveries.list(status="dead")] == [reason]


async def test_a_channel_that_keeps_no_tokens_whispers_in_the_direct_chat() -> None:
    async with open_chat(EchoAgent(), commands=COMMANDS) as chat:
        await chat.platform.set(token_seconds=60.0)
        ada, group, _ = await _ask_in_a_group(chat)
        assert await chat.wait_for_answers(ada.chat_id) == ["for you"]
        assert await chat.platform.answers(group) == []


def test_a_host_without_a_key_is_refused() -> None:
    from frontdesk_testing.messages import MessageChannel

    channel = MessageChannel(platform_url="http://127.0.0.1:1", token="t", secret=SECRET, private_replies=True)
    with pytest.raises(ChannelConfigurationError, match="give the host a seal_key="):
        AgentFrameworkHost(EchoAgent(), channels=[channel])


def test_a_token_belongs_to_its_event_and_ends_by_itself() -> None:
    clock = FakeClock()
    tokens = ReplyTokens("chat", Sealer([Secret(KEY)]), clock)
    item = tokens.seal(inbox_item("evt_1"), "the token", clock.now() + 10.0)
    sealed = decode(encode(item)).reply_token
    assert sealed is not None
    assert tokens.open(sealed) == "the token"
    assert "the token" not in repr(item) + encode(item).decode()
    with pytest.raises(SealError):
        tokens.open(sealed.replace(event_id="evt_2"))
    with pytest.raises(SealError):
        ReplyTokens("other", Sealer([Secret(KEY)]), clock).open(sealed)
    with pytest.raises(SealError, match="needs_seal_key"):
        ReplyTokens("chat", Sealer(), clock).seal(item, "the token", clock.now())
    clock.advance(10.0)
    assert tokens.open(sealed) is None
    assert tokens.open(None) is None
