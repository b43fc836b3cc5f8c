"""A push gets the newest that is known of a person, and what their channel has said of how to reach them."""

import logging
from typing import Any

import pytest

from frontdesk import ChannelIdentity, NativeIdAllowlist, ResponseTarget
from frontdesk.access.contacts import MAX_REFERENCE_LENGTH
from frontdesk.errors import ForbiddenError
from frontdesk.interfaces.channel import ChannelPush
from frontdesk.linkers.one_time_code import OneTimeCodeIdentityLinker
from frontdesk.models.identity import Caller, Reach
from frontdesk.models.request import ChannelRequest
from frontdesk_testing.internals import get_components, get_store
from tests.scenarios.delivery.parcel_chat import ParcelChat, open_host
from tests.scenarios.stores import KINDS


def get_key(identity: ChannelIdentity) -> str:
    return "the only person"


async def test_a_push_got_the_attributes_of_the_first_contact() -> None:
    chat = ParcelChat()
    async with open_host(chat) as host:
        await chat.hear(chat.who("ann", name="Ann"), "one")
        await chat.hear(chat.who("ann", name="Ann Lee", tenant="t"), "two")
        await host.deliver(chat.who("ann"), "by name")
        key = (await get_store(host).identities.find(chat.who("ann"))).isolation_key  # pyright: ignore[reportOptionalMemberAccess]
        await host.deliver(key, "by key")
        told = (await chat.wait(4))[2:]
        assert [one.content for one in told] == ["by name", "by key"]
        assert [one.identity.attributes for one in told] == [{"name": "Ann Lee", "tenant": "t"}] * 2


async def test_a_backend_that_speaks_for_many_is_none_of_them() -> None:
    """A hook says by an attribute for whom each request is, and the backend's own name stays the same."""
    door = ParcelChat("door")
    door.run_hook = lambda request, **_: request.replace(identity=door.who("backend", user=request.input))
    async with open_host(door, identity_resolver=lambda identity: identity.attributes["user"]) as host:
        for user in ("ann", "bob", "ann"):
            await door.context.run(ChannelRequest(channel="door", input=user), Caller(identity=door.who("backend")))
            (known,) = await get_store(host).identities.of_owner(user)
            assert known.attributes == {"user": user}


async def test_attributes_that_stay_are_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = ParcelChat()
    async with open_host(chat) as host:
        await chat.hear(chat.who("ann", name="Ann"), "one", reference={"url": "u"})
        written: list[str] = []
        kind: Any = type(get_store(host).transaction())
        for name in ("remember_identity", "keep_reference", "keep_group"):
            plain = getattr(kind, name)

            def note(*given: Any, plain: Any = plain, name: str = name, **more: Any) -> Any:
                written.append(name)
                return plain(*given, **more)

            monkeypatch.setattr(kind, name, note)
        await chat.hear(chat.who("ann", name="Ann"), "two", reference={"url": "u"})
        await chat.hear(chat.who("ann"), "three")
        assert written == []
        await chat.hear(chat.who("ann", name="Bea"), "four", reference={"url": "v"})
        assert written == ["remember_identity", "keep_reference"]


async def test_whoever_is_linked_stays_so_when_their_name_changes() -> None:
    chat = ParcelChat()
    async with open_host(chat) as host:
        await chat.hear(chat.who("ann", name="Ann"), "one")
        identities = get_store(host).identities
        known = await identities.find(chat.who("ann"), fresh=True)
        assert known is not None
        linked = known.replace(isolation_key="other", version=1, archived=(known.isolation_key,))
        async with get_store(host).transaction() as transaction:
            transaction.remember_identity(linked, instead_of=known)
        # As a process that has not heard of the link yet.
        await get_components(host).contacts._renew(known, chat.who("ann", name="Bea"))
        assert await identities.find(chat.who("ann"), fresh=True) == linked
        await chat.hear(chat.who("ann", name="Bea"), "two")
        assert await identities.find(chat.who("ann"), fresh=True) == linked.replace(
            identity=chat.who("ann", name="Bea")
        )


@pytest.mark.parametrize("kind_of_store", KINDS, indirect=True)
async def test_attributes_that_cannot_be_stored_cost_nobody_an_answer(kind_of_store: str) -> None:
    chat = ParcelChat()
    async with open_host(chat) as host:
        await chat.hear(chat.who("ann", name="Ann"), "one")
        odd = chat.who("ann", name=object())
        first = await get_store(host).identities.find(odd)
        assert first is not None
        await get_components(host).contacts.note(odd, ChannelRequest(channel="chat"), first.isolation_key)
        known = await get_store(host).identities.find(odd, fresh=True)
        assert known is not None
        # What is kept in memory need not be JSON.
        assert known.identity == (odd if kind_of_store == "memory" else chat.who("ann", name="Ann"))


async def test_somebody_who_may_not_come_in_changes_nothing() -> None:
    chat = ParcelChat()
    chat.allowlist = NativeIdAllowlist(["bob"])
    async with open_host(chat) as host:
        await chat.hear(chat.who("ann", name="Ann"), "let me in", reference={"url": "u"})
        with pytest.raises(ForbiddenError):
            await chat.context.storage.put_reference(Caller(identity=chat.who("ann")), {"url": "u"})
        identities = get_store(host).identities
        assert await identities.find(chat.who("ann")) is None
        assert await identities.reach(chat.who("ann")) == Reach()


async def test_a_chat_could_not_be_reached_later_without_what_its_message_had_said() -> None:
    chat = ParcelChat()
    async with open_host(chat) as host:
        answer = await chat.hear(chat.who("ann"), "hi", reference={"url": "one", "thread": {"id": 7}})
        assert answer.reference == {"url": "one", "thread": {"id": 7}}
        await chat.hear(chat.who("ann"), "hi again", reference={"url": "two"})
        await chat.hear(chat.who("bob"), "hi", reference={"url": "bob's"})
        await host.deliver(chat.who("ann"), "Your taxi is here.")
        (*_, told) = await chat.wait(4)
        assert (told.content, told.conversation_id, told.reference) == ("Your taxi is here.", None, {"url": "two"})
        assert await chat.context.storage.get_reference(chat.who("ann")) == {"url": "two"}
        assert await chat.context.storage.get_reference(ChannelIdentity("other", "ann")) == {}


async def test_what_waits_is_sent_to_where_the_person_is_reached_by_then() -> None:
    chat = ParcelChat()
    async with open_host(chat) as host:
        await chat.hear(chat.who("ann"), "hi", reference={"url": "old"})
        parts = get_components(host)
        rows = parts.notifier.notes([chat.who("ann")], "a word", owner="")
        async with parts.store.transaction() as transaction:
            for row in rows:
                transaction.add_delivery(row)
            transaction.keep_reference(chat.who("ann"), {"url": "new"})
        await parts.notifier.send(rows)
        assert (await chat.wait(2))[-1].reference == {"url": "new"}


TARGETS = {
    "channel": ResponseTarget.channel("chat"),
    "identities": ResponseTarget.identity(ChannelIdentity("chat", "ann")),
    "all_linked": ResponseTarget.all_linked,
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
async def test_an_answer_that_goes_elsewhere_finds_its_way(target: ResponseTarget) -> None:
    chat = ParcelChat()
    other = ParcelChat("other", run_hook=lambda request, **_: request.replace(response_target=target))
    async with open_host(chat, other, identity_resolver=get_key):
        await other.context.allow(Caller(identity=other.who("ann")))
        await chat.hear(chat.who("ann", name="Ann"), "hi", reference={"url": "u"})
        request = ChannelRequest(channel="other", input="where?", conversation_id="dm", background=True)
        await other.context.submit(request, Caller(identity=other.who("ann")))
        told = (await chat.wait(2))[-1]
        assert (told.content, told.reference) == ("You said: where?", {"url": "u"})
        assert told.identity == chat.who("ann", name="Ann")


async def test_attributes_that_the_operator_had_given_were_dropped() -> None:
    given = ChannelIdentity("chat", "ann", {"thread": "7"})
    chat = ParcelChat()
    target = ResponseTarget.identities([given, ChannelIdentity("chat", "bob")])
    other = ParcelChat("other", run_hook=lambda request, **_: request.replace(response_target=target))
    async with open_host(chat, other):
        await chat.hear(chat.who("ann", name="Ann"), "hi")
        await chat.hear(chat.who("bob", name="Bob"), "hi")
        request = ChannelRequest(channel="other", input="where?", background=True)
        await other.context.submit(request, Caller(identity=other.who("eve")))
        told = (await chat.wait(4))[2:]
        found = sorted((one.identity for one in told), key=lambda one: one.key)
        assert found == [given, chat.who("bob", name="Bob")]


async def test_an_event_that_is_no_message_says_how_somebody_is_reached() -> None:
    chat = ParcelChat()
    async with open_host(chat) as host:
        await chat.context.storage.put_reference(Caller(identity=chat.who("ann", name="Ann")), {"url": "installed"})
        await host.deliver(chat.who("ann"), "Welcome.")
        assert (await chat.wait(1))[0].reference == {"url": "installed"}


async def test_a_reference_has_a_size_and_costs_nobody_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    chat = ParcelChat()
    large = {"url": "secret" * MAX_REFERENCE_LENGTH}
    async with open_host(chat) as host:
        with caplog.at_level(logging.DEBUG):
            answer = await chat.hear(chat.who("ann"), "hi", reference=large)
            for wrong in (large, {"url": object()}):
                with pytest.raises(ValueError, match="a reference"):
                    await chat.context.storage.put_reference(Caller(identity=chat.who("ann")), wrong)
        assert answer.content == "You said: hi"
        assert await get_store(host).identities.reach(chat.who("ann")) == Reach()
        assert "not stored" in caplog.text
        assert "secret" not in caplog.text


@pytest.mark.parametrize("resolver", [None, get_key])
async def test_a_group_that_shares_a_conversation_was_told_nothing(resolver: Any) -> None:
    chat = ParcelChat(scope="per_conversation")
    people = [chat.who("ann"), chat.who("bob"), chat.who("cid")]
    target = ResponseTarget.identities(people)
    other = ParcelChat("other", run_hook=lambda request, **_: request.replace(response_target=target))
    async with open_host(chat, other, identity_resolver=resolver) as host:
        for one in people[:2]:
            await chat.hear(one, "hi all", group="g1", reference={"thread": one.native_id})
        await chat.hear(people[2], "hi", reference={"url": "cid's"})
        request = ChannelRequest(channel="other", input="news", background=True)
        await other.context.submit(request, Caller(identity=other.who("eve")))
        told = (await chat.wait(5))[3:]
        # Once to the group, and to the one who was last heard in a direct chat in that.
        assert {one.conversation_id: one.reference for one in told} == {"g1": {"thread": "ann"}, None: {"url": "cid's"}}
        await host.deliver(people[0], "Dinner is served.")
        assert (await chat.wait(6))[-1].conversation_id == "g1"
        # What is said in the group afterwards is said after that.
        assert [one.text for one in await _history(host, "g1")][-1] == "Dinner is served."


async def _history(host: Any, conversation_id: str) -> Any:
    from frontdesk.sessions.scope import build_tracked_name

    name = build_tracked_name("per_conversation", owner="", channel="chat", conversation_id=conversation_id, group=True)
    session = await get_store(host).sessions.find(name)
    assert session is not None
    return await get_store(host).sessions.history("", session.session_id)


async def test_a_group_that_asked_is_not_answered_twice() -> None:
    people = [ChannelIdentity("chat", "ann"), ChannelIdentity("chat", "bob")]
    target = ResponseTarget.identities(people)
    chat = ParcelChat(scope="per_conversation")
    async with open_host(chat) as host:
        await chat.hear(people[1], "hi all", group="g1")
        chat.run_hook = lambda request, **_: request.replace(response_target=target)
        answer = await chat.hear(people[0], "and now?", group="g1")
        assert answer.conversation_id == "g1"
        assert len([one for one in await host.deliveries.list() if one.conversation_id == "g1"]) == 2


@pytest.mark.parametrize("scope", ["per_user", "per_user_per_conversation"])
async def test_what_is_told_to_one_alone_stays_out_of_the_group(scope: Any) -> None:
    chat = ParcelChat(scope=scope)
    async with open_host(chat) as host:
        await chat.hear(chat.who("ann"), "hi all", group="g1", reference={"thread": "1"})
        await host.deliver(chat.who("ann"), "Your results are in.")
        told = (await chat.wait(2))[-1]
        assert (told.conversation_id, told.reference) == (None, {})


async def test_who_moves_to_a_direct_chat_is_told_there() -> None:
    chat = ParcelChat(scope="per_conversation")
    async with open_host(chat) as host:
        await chat.hear(chat.who("ann"), "hi all", group="g1")
        await chat.hear(chat.who("ann"), "just us", reference={"url": "u"})
        # What the operator runs for somebody says nothing of where they are.
        await host.run_in_background(ChannelRequest(channel="chat", input="x"), identity=chat.who("ann"))
        await host.deliver(chat.who("ann"), "As you like.")
        told = (await chat.wait(3))[-1]
        assert (told.conversation_id, told.reference) == (None, {"url": "u"})


async def test_a_private_word_did_not_reach_a_channel_that_has_only_push_part() -> None:
    chat = ParcelChat()
    assert not isinstance(chat, ChannelPush)
    async with open_host(chat, linker=OneTimeCodeIdentityLinker()) as host:
        await chat.hear(chat.who("ann"), "hi", reference={"url": "u"})
        assert get_components(host).notifier.can_tell(chat.who("ann"))
        assert await get_components(host).notifier.tell(chat.who("ann"), "Your code is 123.")
        told = (await chat.wait(2))[-1]
        assert (told.content, told.conversation_id, told.reference) == ("Your code is 123.", None, {"url": "u"})
        assert told.idempotency_key
