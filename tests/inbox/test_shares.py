"""Channels share the slots at which events are answered, and all unlinked visitors are one group."""

from collections.abc import AsyncIterator
from typing import Any

from frontdesk import AgentFrameworkHost, ChannelIdentity, EventLimits, InMemoryStateStore
from frontdesk.access.visitors import UnlinkedVisitors
from frontdesk.channels.web import WebChatChannel
from frontdesk.chat.i18n.texts import Texts
from frontdesk.inbox import worker
from frontdesk.inbox.groups import UNLINKED, SenderGroups
from frontdesk.inbox.intake import EventLimiter
from frontdesk.interfaces.channel import Channel
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, IdentityRecord
from frontdesk.models.link import LinkRecord
from frontdesk.models.request import ChannelRequest, ChannelSession
from frontdesk_testing import EchoAgent, FakeClock, GatedAgent
from frontdesk_testing.internals import get_components
from frontdesk_testing.messages import MessageChannel
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import open_chat

PLACE = {"channel": "web", "conversation_id": "vis:main"}


def visitor_says(number: int, visitor: str, chat: str) -> InboxItem:
    caller = Caller(identity=ChannelIdentity(channel="web", native_id=visitor))
    conversation_id = f"{visitor}:{chat}"
    request = ChannelRequest(
        channel="web",
        operation="message.create",
        input=f"visitor {number}",
        session=ChannelSession(key=f"web:{visitor}:{chat}"),
        conversation_id=conversation_id,
    )
    return InboxItem(
        channel="web",
        event_id=f"evt_{number}",
        conversation_id=conversation_id,
        received_at=float(number),
        caller=caller,
        request=request,
    )


class SlowForVisitors(GatedAgent):
    """Does not answer visitors before it is released."""

    async def speak(self, words: list[str]) -> AsyncIterator[Any]:
        answer = super().speak(words) if words[0].strip() == "visitor" else EchoAgent.speak(self, words)
        async for update in answer:
            yield update


async def flood(host: AgentFrameworkHost, visitors: int, messages: int) -> None:
    """Has each visitor send messages, each in a conversation of its own."""
    intake = get_components(host).events.intake
    for number in range(visitors * messages):
        assert await intake.accept(visitor_says(number, f"vis_{number % visitors}", str(number)))


async def test_thirty_cookies_with_600_messages_delayed_another_channel() -> None:
    agent = SlowForVisitors()
    async with open_chat(agent, channels=[WebChatChannel()], store=InMemoryStateStore()) as chat:
        await flood(chat.host, visitors=30, messages=20)
        # Three groups have 33 slots each: the channel, linked visitors and unlinked visitors. The other 101 are shared.
        await until(lambda: agent.running == 134)
        people = [await chat.platform.user(f"Person {number}") for number in range(5)]
        for person in people:
            await chat.platform.say(person, "hello")
        # Not one of the visitors' turns has ended by then.
        assert [await chat.wait_for_answers(person.chat_id) for person in people] == [["hello"]] * 5
        assert agent.running == 134
        agent.release.set()


async def test_a_backlog_of_visitors_hid_the_events_of_another_channel_from_a_new_process(monkeypatch: Any) -> None:
    """A process that finds a backlog at its start takes up the events of all channels."""
    monkeypatch.setattr(worker, "_PAGE_ROWS", 10)
    agent, store = SlowForVisitors(), InMemoryStateStore()
    async with store.transaction() as transaction:
        for number in range(500):
            transaction.accept(visitor_says(number, f"vis_{number}", "main"))
        late = visitor_says(500, "somebody", "chat")
        identity = ChannelIdentity(channel="messages", native_id="somebody")
        request = late.request.replace(channel="messages", input="hello")
        transaction.accept(late.replace(channel="messages", caller=Caller(identity=identity), request=request))
    async with open_chat(agent, channels=[WebChatChannel()], store=store):
        await until(lambda: any(seen[-1].text == "hello" for seen in agent.seen))
        agent.release.set()


async def test_a_conversation_with_a_backlog_kept_its_slot(monkeypatch: Any) -> None:
    """Others that wait come first after a few turns."""
    monkeypatch.setattr(worker, "MAX_CONCURRENT", 1)
    agent, store = EchoAgent(), InMemoryStateStore()
    async with store.transaction() as transaction:
        for number in range(6):
            transaction.accept(visitor_says(number, "busy", "main"))
        transaction.accept(visitor_says(6, "other", "main"))
    async with open_chat(agent, channels=[WebChatChannel()], store=store):
        await until(lambda: len(agent.seen) == 7)
    assert [seen[-1].text for seen in agent.seen] == [f"visitor {number}" for number in (0, 1, 2, 6, 3, 4, 5)]


async def test_unlinked_visitors_could_let_any_number_of_messages_wait() -> None:
    agent, store = SlowForVisitors(), InMemoryStateStore()
    web = WebChatChannel(event_limits=EventLimits(max_waiting_for_unlinked=40))
    async with open_chat(agent, channels=[web], store=store) as chat:
        await flood(chat.host, visitors=40, messages=1)
        intake = get_components(chat.host).events.intake
        assert not await intake.accept(visitor_says(100, "new", "main"))
        # An account is not rejected for what visitors send.
        await link(store, "linked", subject="google:1")
        assert await intake.accept(visitor_says(101, "linked", "main"))
        agent.release.set()
        await until(lambda: _nobody_waits(store))
        assert await intake.accept(visitor_says(102, "new", "main"))


async def _nobody_waits(store: Any) -> bool:
    return not await store.inbox.count_waiting_on("web")


async def link(store: Any, visitor: str, *, subject: str | None, key: str = "", channel: str = "web") -> None:
    identity = ChannelIdentity(channel=channel, native_id=visitor)
    key = key or f"key_{visitor}"
    async with store.transaction() as transaction:
        transaction.remember_identity(IdentityRecord(identity=identity, isolation_key=key, created_at=0.0))
        transaction.add_link(
            LinkRecord(
                link_id=f"lnk_{visitor}",
                isolation_key=key,
                identity=identity,
                linked_at=0.0,
                linker="code",
                subject=subject,
            )
        )


class TestGroups:
    def make(self, store: InMemoryStateStore) -> SenderGroups:
        message = MessageChannel(platform_url="http://127.0.0.1", token="t", secret="a secret of sixteen characters")
        channels: dict[str, Channel] = {"messages": message, "web": WebChatChannel()}
        return SenderGroups(channels, UnlinkedVisitors(store, channels))

    async def test_each_channel_is_a_group_and_unlinked_visitors_are_another_one(self) -> None:
        groups = self.make(InMemoryStateStore()).task_groups()
        assert tuple(groups.names) == ("messages", "web", UNLINKED)
        assert groups.get_group({"channel": "messages", "conversation_id": "1"}) == "messages"
        # Nothing is known of it, and it could be anybody's.
        assert groups.get_group(PLACE) == UNLINKED

    async def test_a_visitor_with_an_account_is_of_the_channel(self) -> None:
        store = InMemoryStateStore()
        groups = self.make(store)
        await groups.note(visitor_says(1, "vis", "main"))
        assert groups.task_groups().get_group(PLACE) == UNLINKED
        await link(store, "vis", subject="google:1")
        await groups.note(visitor_says(2, "vis", "main"))
        assert groups.task_groups().get_group(PLACE) == "web"

    async def test_visitors_linked_with_each_other_alone_have_no_account(self) -> None:
        store = InMemoryStateStore()
        groups = self.make(store)
        for visitor in ("vis", "vis_2"):
            await link(store, visitor, subject=None, key="key_both")
        await groups.note(visitor_says(1, "vis", "main"))
        assert groups.task_groups().get_group(PLACE) == UNLINKED
        await link(store, "somebody", subject=None, key="key_both", channel="messages")
        await groups.note(visitor_says(2, "vis", "main"))
        assert groups.task_groups().get_group(PLACE) == "web"

    async def test_visitors_took_a_turn_each_in_the_quarantine(self) -> None:
        store = InMemoryStateStore()
        groups = self.make(store)
        visitors = [visitor_says(number, f"vis_{number}", "main") for number in range(3)]
        assert {await groups.build_sender(item) for item in visitors} == {(UNLINKED, "")}
        await link(store, "ada", subject="s|ada")
        account = visitor_says(4, "ada", "main")
        assert await groups.build_sender(account) == account.caller.identity.key


async def test_texts_of_visitors_filled_the_disk() -> None:
    limits = EventLimits(per_caller=None, max_text_bytes_per_hour_for_unlinked=100_000)
    store, clock = InMemoryStateStore(), FakeClock()

    def says(number: int, visitor: str, size: int) -> InboxItem:
        item = visitor_says(number, visitor, str(number))
        return item.replace(request=item.request.replace(input="\u00e4" * (size // 2)))

    channels: dict[str, Channel] = {"web": WebChatChannel(event_limits=limits)}
    replies: list[str] = []

    async def reply(item: InboxItem, text: str, number: int) -> None:
        replies.append(item.caller.identity.native_id)

    visitors = UnlinkedVisitors(store, channels)
    limiter = EventLimiter(store, channels, clock, reply, Texts(), visitors)
    refused = [await limiter.refuses(says(number, f"vis_{number}", 30_000)) for number in range(4)]
    assert refused == [False, False, False, True]
    assert not await limiter.refuses(says(5, "vis_5", 10_000))
    assert await limiter.refuses(says(6, "vis_6", 1_000))
    # Each second gives back its share of an hour.
    clock.advance(1800)
    refused = [await limiter.refuses(says(number, f"vis_{number}", 25_000)) for number in range(10, 13)]
    assert refused == [False, False, True]
    # An account is not rejected for what visitors send.
    await link(store, "linked", subject="google:1")
    assert not await limiter.refuses(says(20, "linked", 90_000))
    assert replies == ["vis_3", "vis_6", "vis_12"]
