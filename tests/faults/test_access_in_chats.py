"""Chats: allowlists matched names, chats passed for people, signatures were not looked at."""

import json
import time
from typing import Any

import pytest

from frontdesk import ChannelIdentity, LinkChallenge, NativeIdAllowlist, OneTimeCodeIdentityLinker
from frontdesk.errors import TooManyRequestsError
from frontdesk_testing import EchoAgent
from frontdesk_testing.internals import get_store
from frontdesk_testing.messages import Person
from frontdesk_testing.messages.wire import Chat as Place
from frontdesk_testing.messages.wire import Event, MessageIn, User
from tests.scenarios.messages.chat import MessagesHost, open_chat, post

DENIED = "You can't use this assistant."


async def _check_denied(chat: MessagesHost, who: Person, chat_id: str, text: str) -> None:
    """Somebody is refused: in a few words where others read it, in more of them alone."""
    before = len(await chat.platform.answers(chat_id))
    await chat.platform.say(who, text, chat_id=chat_id)
    said = (await chat.last(chat_id, before + 1)).text
    assert said.startswith(DENIED)
    if chat_id != who.chat_id:
        assert said == DENIED
        assert (await chat.wait_for_answers(who.chat_id))[-1].startswith(DENIED + " ")


async def test_an_allowlist_matched_display_names() -> None:
    agent = EchoAgent()
    async with open_chat(agent, allowlist=NativeIdAllowlist(["u-ada"])) as chat:
        ada = await chat.platform.user("Ada", user_id="u-ada")
        for name in ("Ada", "u-ada"):
            impostor = await chat.platform.user(name)
            await _check_denied(chat, impostor, impostor.chat_id, "I am Ada")
        assert agent.seen == []
        await chat.platform.say(ada, "I am Ada")
        assert await chat.wait_for_answers(ada.chat_id) == ["I am Ada"]


async def test_a_new_name_changes_nothing() -> None:
    async with open_chat(EchoAgent(), allowlist=NativeIdAllowlist(["u-ada"])) as chat:
        ada = await chat.platform.user("Ada", user_id="u-ada")
        await chat.platform.user("Somebody", user_id="u-ada")
        await chat.platform.say(ada, "still me")
        assert await chat.wait_for_answers(ada.chat_id) == ["still me"]


async def test_a_chat_id_passed_for_a_sender() -> None:
    agent = EchoAgent()
    listed: set[str] = set()
    async with open_chat(agent, allowlist=NativeIdAllowlist(lambda: set(listed))) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        listed |= {ada.chat_id, group.chat_id, f"messages:{ada.user_id}", ada.user_id.upper(), ada.user_id + " "}
        await _check_denied(chat, ada, ada.chat_id, "hello")
        await _check_denied(chat, ada, group.chat_id, "@desk hello")
        assert agent.seen == []


@pytest.mark.parametrize("scope", ["per_user", "per_user_per_conversation", "per_conversation"])
async def test_a_permission_for_the_direct_chat_opened_the_group(scope: Any) -> None:
    agent = EchoAgent()
    listed = NativeIdAllowlist(["u-ada"])
    async with open_chat(agent, allowlist=listed, conversation_scope=scope, accept_in_group="all") as chat:
        ada, bob = await chat.platform.user("Ada", user_id="u-ada"), await chat.platform.user("Bob")
        group = await chat.platform.group("Friends", ada, bob)
        await chat.platform.say(ada, "hello", chat_id=group.chat_id)
        await chat.wait_for_answers(group.chat_id)
        # Every message is looked at for itself: who is in a group with somebody who may is not somebody who may.
        await _check_denied(chat, bob, group.chat_id, "me too")
        await _check_denied(chat, bob, group.chat_id, "/help")
        await _check_denied(chat, bob, group.chat_id, "/new")
        await chat.platform.say(ada, "only me", chat_id=group.chat_id)
        assert (await chat.wait_for_answers(group.chat_id, 5))[-1] == "only me"
    assert [one.text for one in agent.seen[-1] if one.role == "user"] == ["hello", "only me"]
    assert len(agent.seen) == 2


async def test_who_may_not_come_in_leaves_nothing_behind() -> None:
    async with open_chat(EchoAgent(), allowlist=NativeIdAllowlist(["u-ada"])) as chat:
        bob = await chat.platform.user("Bob")
        await _check_denied(chat, bob, bob.chat_id, "hello")
        await _check_denied(chat, bob, bob.chat_id, "/new")
        identity = ChannelIdentity(channel=chat.channel.name, native_id=bob.user_id)
        assert await get_store(chat.host).identities.find(identity) is None


async def test_a_challenge_never_appears_in_a_group() -> None:
    agent = EchoAgent()
    async with open_chat(agent, require_link=True, linker=OneTimeCodeIdentityLinker()) as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        group = await chat.platform.group("Friends", ada, bob)
        await chat.platform.say(ada, "@desk hello", chat_id=group.chat_id)
        (short,) = await chat.wait_for_answers(group.chat_id)
        (challenge,) = await chat.wait_for_answers(ada.chat_id)
        assert short == "Link your account first, in our direct chat."
        assert "/link" in challenge
        await chat.platform.say(ada, "hello")
        assert "/link" in (await chat.wait_for_answers(ada.chat_id, 2))[-1]
        assert len(await chat.platform.answers(group.chat_id)) == 1
    assert agent.seen == []


class _Tired(OneTimeCodeIdentityLinker):
    async def begin(self, identity: ChannelIdentity) -> LinkChallenge:
        raise TooManyRequestsError("Wait a little.")


async def test_who_can_not_link_is_told_why_and_not_in_the_group() -> None:
    async with open_chat(EchoAgent(), require_link=True, linker=_Tired()) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        await chat.platform.say(ada, "@desk hello", chat_id=group.chat_id)
        assert await chat.wait_for_answers(ada.chat_id) == ["Link your account first. Wait a little."]
        assert await chat.wait_for_answers(group.chat_id) == ["Link your account first, in our direct chat."]


def _event(text: str = "hello", event_id: str = "forged-1") -> Event:
    return Event(
        event_id=event_id,
        number=1,
        type="message",
        at=time.time(),
        chat=Place(chat_id="c-1", kind="direct"),
        sender=User(user_id="u-ada", name="Ada"),
        message=MessageIn(message_id="m-1", text=text),
    )


NOT_SIGNED: dict[str, dict[str, Any]] = {
    "no signature": {"x-message-signature": ""},
    "no time": {"x-message-timestamp": ""},
    "another secret": {"secret": "a secret of somebody else"},
    "an empty secret": {"secret": ""},
    "no version": {"x-message-signature": "0" * 64},
    "half a signature": {"x-message-signature": "v1=abc"},
    "out of range": {"x-message-timestamp": str(int(time.time()) - 1)},
    "a time that is none": {"x-message-timestamp": "soon"},
    "signed long ago": {"at": time.time() - 3600},
    "signed in the future": {"at": time.time() + 3600},
}


async def test_a_missing_signature_was_accepted() -> None:
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        for how, changes in NOT_SIGNED.items():
            refused = await post(chat, _event(), **changes)
            assert refused.status_code == 401, how
            assert refused.json()["error"]["code"] == "unauthenticated", how
            # Nobody learns how it should have been signed.
            assert "v1" not in refused.text, how
        ada = await chat.platform.user("Ada", user_id="u-ada")
        await chat.platform.say(ada, "the only one")
        assert await chat.wait_for_answers(ada.chat_id) == ["the only one"]
    assert len(agent.seen) == 1


async def test_a_body_that_was_changed_on_its_way() -> None:
    async with open_chat(EchoAgent()) as chat:
        signed: dict[str, Any] = {}
        good = await post(chat, _event())
        assert good.status_code == 200
        for name in ("x-message-timestamp", "x-message-signature"):
            signed[name] = good.request.headers[name]
        other = json.dumps({**json.loads(good.request.content), "event_id": "forged-2"}).encode()
        assert (await post(chat, other, **signed)).status_code == 401


async def test_a_replayed_signature_was_accepted() -> None:
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada", user_id="u-ada")
        await chat.platform.set(hold=True)
        event = await chat.platform.say(ada, "hello")
        first = await post(chat, event)
        await chat.wait_for_answers(ada.chat_id)
        again = await chat.platform.http.post(
            str(first.request.url), content=first.request.content, headers=dict(first.request.headers)
        )
        # It is the platform's own, so it is acknowledged; its event is known, so it is not run.
        assert again.status_code == 200
        await chat.platform.release(await chat.platform.say(ada, "goodbye"))
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["hello", "goodbye"]
    assert len(agent.seen) == 2


async def test_the_platforms_own_challenge_was_refused() -> None:
    async with open_chat(EchoAgent()) as chat:
        # The platform has asked already, or there would be no webhook; anybody else gets no answer.
        assert (await chat.platform.state()).webhook_verified
        assert (await post(chat, b'{"challenge":"word"}')).json() == {"challenge": "word"}
        assert (await post(chat, b'{"challenge":"word"}', secret="not the secret at all")).status_code == 401
        unsigned: dict[str, Any] = {"x-message-signature": "", "x-message-timestamp": ""}
        assert (await post(chat, b'{"challenge":"word"}', **unsigned)).status_code == 401


async def test_a_signed_body_that_makes_no_sense() -> None:
    async with open_chat(EchoAgent()) as chat:
        for body in (b"", b"{}", b"[]", b"null", b'{"event_id":1}', b"\xff", b"[" * 100_000):
            refused = await post(chat, body)
            assert refused.status_code == 400, body[:20]
            assert refused.json()["error"]["code"] == "invalid_request", body[:20]
