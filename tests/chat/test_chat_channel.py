"""What the base of chat channels does beyond its contract: words for buttons, batches, moves, polls and large files."""

import asyncio
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

import msgspec
import pytest
from agent_framework import Executor, Message, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler

from frontdesk import AgentFrameworkHost, ChannelConfigurationError, InMemoryStateStore
from frontdesk.chat.abilities import AnswersHandshakes, PollsEvents
from frontdesk.chat.media import MediaLimits
from frontdesk.chat.messages import BotIdentity, ConversationMove, DeliveryReceipt, Destination, Inbound, Proof
from frontdesk.errors import StoreError, UnauthenticatedError
from frontdesk_testing import ChatContract, ChatFile, EchoAgent, serving
from frontdesk_testing.chat_driver import Chat
from frontdesk_testing.chat_questions import Bank
from tests.chat.postbox.channel import SIGNATURE, TIME, PostboxChannel
from tests.chat.postbox.platform import SECRET, TOKEN, Postbox
from tests.scenarios.messages.test_questions import flow


def channel_on(platform: Postbox, kind: type[PostboxChannel] = PostboxChannel, **settings: Any) -> PostboxChannel:
    return kind(url=platform.url, token=TOKEN, secret=SECRET, allow_private=True, **settings)


@asynccontextmanager
async def open_chat(
    target: Any = None, *, kind: type[PostboxChannel] = PostboxChannel, **settings: Any
) -> AsyncIterator[tuple[Chat, Postbox]]:
    """Serve a host on Postbox."""

    class Wire(ChatContract):
        def channel(self, platform: Any, **given: Any) -> PostboxChannel:
            return channel_on(platform, kind, **given)

    async with Postbox() as platform, Wire().chat(target, platform=platform, **settings) as chat:
        yield chat, platform


class Wordy(PostboxChannel):
    has_buttons = False


@pytest.mark.parametrize(("word", "paid"), [("yes", [5]), ("no", [])])
async def test_without_buttons_a_question_is_answered_with_words(word: str, paid: list[int]) -> None:
    bank = Bank()
    async with open_chat(bank.agent("done"), kind=Wordy) as (chat, platform):
        ada = await platform.person("Ada")
        await platform.say(ada, "pay 5")
        (question,) = await chat.texts(ada.chat_id, 1)
        approval_id = question.partition("yes ")[2].split()[0].rstrip(".,")
        await platform.say(ada, f"{word} {approval_id}")
        assert "done" in (await chat.texts(ada.chat_id, 3))[1:]
        await platform.say(ada, f"{word} {approval_id}")
        assert "answered before" in (await chat.texts(ada.chat_id, 4))[3]
    assert bank.paid == paid


TWO_COLOURS: Any = Literal["red", "sky blue"]


class Colours(Executor):
    """Asks for one of two colours."""

    @handler
    async def ask(self, messages: list[Message], context: WorkflowContext[str, str]) -> None:
        await context.request_info("Which colour?", TWO_COLOURS)

    @response_handler
    async def chosen(
        self, question: str, colour: Literal["red", "sky blue"], context: WorkflowContext[str, str]
    ) -> None:
        await context.yield_output(f"you like {colour}")


def colours() -> Workflow:
    executor = Colours(id="colours")
    return WorkflowBuilder(name="colours", start_executor=executor, output_from=[executor]).build()


@pytest.mark.parametrize("answer", ["2", "Sky blue"])
async def test_without_buttons_a_choice_is_answered_with_its_number_or_its_words(answer: str) -> None:
    async with open_chat(colours, kind=Wordy) as (chat, platform):
        ada = await platform.person("Ada")
        await platform.say(ada, "hello")
        (question,) = await chat.texts(ada.chat_id, 1)
        assert question == "Which colour?\n\n1. red\n2. sky blue\n\nPlease answer with one of these, or its number."
        await platform.say(ada, answer)
        assert (await chat.texts(ada.chat_id, 2))[1] == "you like sky blue"


class Batching(PostboxChannel):
    """Takes bodies with several events."""

    def events(self, body: bytes) -> Sequence[bytes]:
        return [bytes(event) for event in msgspec.json.decode(body, type=list[msgspec.Raw])]


async def test_an_event_that_cannot_be_read_keeps_back_none_of_its_batch() -> None:
    async with open_chat(kind=Batching) as (chat, platform):
        ada = await platform.person("Ada")
        body = b'[{"id": 7}, %s]' % platform.event(ada, "hello")
        for _ in range(2):
            headers = {"content-type": "application/json", **platform.signed(body, at=time.time())}
            answer = await chat.client.http.post(chat.webhook, content=body, headers=headers)
            assert answer.status_code == 400
        await chat.until_shown(ada.chat_id, "hello")


class Greeting(PostboxChannel, AnswersHandshakes):
    """Is asked who it is, and takes forms."""

    takes_forms = True

    def handshake(self, query: Mapping[str, str]) -> bytes:
        if query.get("word") != "open sesame":
            raise UnauthenticatedError("The word is wrong.")
        return query["challenge"].encode()

    def events(self, body: bytes) -> Sequence[bytes]:
        return [body if body.startswith(b"{") else dict(parse_qsl(body.decode()))["payload"].encode()]


async def test_a_handshake_is_answered_for_who_knows_the_word() -> None:
    async with open_chat(kind=Greeting) as (chat, _):
        right = await chat.client.http.get(chat.webhook, params={"word": "open sesame", "challenge": "42"})
        assert (right.status_code, right.text, right.headers["content-type"]) == (
            200,
            "42",
            "text/plain; charset=utf-8",
        )
        assert (await chat.client.http.get(chat.webhook, params={"word": "please"})).status_code == 401
        assert (await chat.client.http.get(f"{chat.webhook}?{'&'.join(['a=b'] * 99)}")).status_code == 400


@pytest.mark.parametrize(("kind", "status"), [(Greeting, 200), (PostboxChannel, 415)])
async def test_a_form_is_taken_where_the_platform_sends_forms(kind: type[PostboxChannel], status: int) -> None:
    async with open_chat(kind=kind) as (chat, platform):
        ada = await platform.person("Ada")
        body = urlencode({"payload": platform.event(ada, "hello").decode()}).encode()
        form = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
        unsigned = await chat.client.http.post(chat.webhook, content=body, headers=form)
        assert unsigned.status_code == 401
        signed = {**form, **platform.signed(body, at=time.time())}
        assert (await chat.client.http.post(chat.webhook, content=body, headers=signed)).status_code == status
        if status == 200:
            await chat.until_shown(ada.chat_id, "hello")


async def test_a_channel_reads_the_events_of_its_scopes_alone() -> None:
    for scopes, heard in ((("direct",), "here"), (("group",), "there")):
        agent = EchoAgent()
        async with open_chat(agent, scopes=scopes) as (chat, platform):
            ada = await platform.person("Ada")
            group = await platform.group(ada)
            await platform.say(ada, f"{platform.mention} there", chat_id=group)
            await platform.say(ada, "here")
            await chat.until_shown(ada.chat_id if heard == "here" else group, heard)
            assert [len(await platform.shown(place)) for place in (ada.chat_id, group)] == [
                int(heard == "here"),
                int(heard == "there"),
            ]
        assert len(agent.seen) == 1


@pytest.mark.parametrize(
    ("settings", "finding"),
    [
        ({"scopes": ()}, "scopes must be"),
        ({"scopes": ("channel",)}, "scopes must be"),
        ({"scopes": ("direct",), "greet_groups": True}, "greet_groups has no effect"),
        ({"feedback_hook": print}, "feedback_hook has no effect"),
        ({"previous_secrets": ["now", ""]}, "previous_secrets must be"),
    ],
)
def test_settings_of_scopes_and_secrets_are_checked(settings: dict[str, Any], finding: str) -> None:
    channel = PostboxChannel(url="http://127.0.0.1:1", token="t", secret="s", allow_private=True, **settings)
    assert any(finding in found for found in channel.findings())


async def test_an_earlier_secret_is_accepted_while_it_is_rotated() -> None:
    channel = PostboxChannel(
        url="http://127.0.0.1:1", token="t", secret="new", allow_private=True, previous_secrets=["an old secret"]
    )
    assert "an old secret" not in f"{channel.chat_config!r} {vars(channel)!r}"
    for secret, accepted in (("new", True), ("an old secret", True), ("other", False), ("", False)):
        mark = hmac.new(secret.encode(), b"100.{}", hashlib.sha256).hexdigest().encode()
        headers = {SIGNATURE: mark, TIME: b"100"}
        with nullcontext() if accepted else pytest.raises(UnauthenticatedError):
            await channel.verify(headers, b"{}", 100.0)


class Reporting(PostboxChannel):
    """Sends several events in a body; a text `receipt of ID` is the receipt of a message."""

    def events(self, body: bytes) -> Sequence[bytes]:
        return tuple(body.splitlines())

    def read(self, event: bytes, bot: BotIdentity, proof: Proof | None) -> Inbound | None:
        said = super().read(event, bot, proof)
        if said is None or not said.text.startswith("receipt of "):
            return said
        return DeliveryReceipt(message_id=said.text.removeprefix("receipt of "), at=said.at)


async def test_the_receipt_of_an_unknown_message_keeps_back_none_of_its_batch() -> None:
    async with open_chat(kind=Reporting) as (chat, platform):
        ada = await platform.person("Ada")
        body = b"\n".join((platform.event(ada, "receipt of a message of another app"), platform.event(ada, "hello")))
        signed = {"content-type": "application/json", **platform.signed(body, at=time.time())}
        response = await chat.client.http.post(chat.webhook, content=body, headers=signed)
        # The receipt is to come again, and the message is answered meanwhile.
        assert response.status_code == 503
        await chat.until_shown(ada.chat_id, "hello")


class Moving(PostboxChannel):
    """Knows a platform whose groups move: an event says so with its text."""

    def read(self, event: bytes, bot: BotIdentity, proof: Proof | None) -> Inbound | None:
        said = super().read(event, bot, proof)
        if said is None or not said.text.startswith("moved to "):
            return said
        new = Destination(chat_id=said.text.removeprefix("moved to "), kind="group")
        return ConversationMove(old=said.place, new=new)


async def test_a_group_that_has_moved_goes_on() -> None:
    async with open_chat(kind=Moving, accept_in_group="all") as (chat, platform):
        ada = await platform.person("Ada")
        old, new = await platform.group(ada), await platform.group(ada)
        await platform.say(ada, "before", chat_id=old)
        await chat.until_shown(old, "before")
        await platform.say(ada, f"moved to {new}", chat_id=old)
        await platform.say(ada, "after", chat_id=new)
        await chat.until_shown(new, "after")
        assert len(await chat.sessions()) == 1


async def test_a_move_that_contradicts_an_earlier_one_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async with open_chat(kind=Moving, accept_in_group="all") as (chat, platform):
        ada = await platform.person("Ada")
        old, new = await platform.group(ada), await platform.group(ada)
        for place, text in ((old, f"moved to {new}"), (new, f"moved to {old}"), (old, "moved to elsewhere")):
            await platform.say(ada, text, chat_id=place)
        await platform.say(ada, "after", chat_id=new)
        await chat.until_shown(new, "after")
    assert caplog.text.count("event skipped: channel=postbox") == 2


async def test_the_click_on_a_choice_is_answered_with_nothing() -> None:
    async with open_chat(flow) as (chat, platform):
        ada = await platform.person("Ada")
        await platform.say(ada, "colour")
        (question,) = await chat.messages(ada.chat_id, 1)
        click = await platform.press(ada, question, question.buttons[1].data)
        assert (await chat.texts(ada.chat_id, 2))[1] == "colour BLUE"
        assert platform.notices == {click: ""}


async def test_a_chat_that_is_said_to_move_twice_holds_nothing_back() -> None:
    async with open_chat(kind=Moving, accept_in_group="all") as (chat, platform):
        ada = await platform.person("Ada")
        new, third = await platform.group(ada), await platform.group(ada)
        for place in (new, third):
            event = platform.event(ada, f"moved to {place}")
            signed = {"content-type": "application/json", **platform.signed(event, at=time.time())}
            response = await chat.client.http.post(chat.webhook, content=event, headers=signed)
            assert response.status_code == 200, response.text
        await platform.say(ada, "after", chat_id=new)
        await chat.until_shown(new, "after")


async def test_a_file_that_is_too_large_is_refused_and_its_sender_is_told() -> None:
    agent = EchoAgent()
    async with open_chat(agent, media=MediaLimits(max_bytes=5)) as (chat, platform):
        ada = await platform.person("Ada")
        await platform.say(ada, "look", files=[ChatFile(media_type="text/plain", data=b"too long")])
        (refusal,) = await chat.texts(ada.chat_id, 1)
        assert "5 B" in refusal
    assert agent.seen == []


class Polled(PostboxChannel, PollsEvents):
    """Fetches what others would be sent."""

    polls = 0

    async def poll(self, offset: int) -> Sequence[tuple[int, bytes]]:
        type(self).polls += 1
        self.polling.set()
        if offset or not self.waiting:
            await asyncio.Event().wait()
        return list(enumerate(self.waiting))

    polling: asyncio.Event
    waiting: list[bytes]


async def test_one_of_two_hosts_polls_and_the_other_takes_over() -> None:
    store = InMemoryStateStore()

    def polled(platform: Postbox, *waiting: bytes) -> Polled:
        channel = channel_on(platform, Polled, transport="polling", live="off")
        assert isinstance(channel, Polled)
        channel.polling, channel.waiting = asyncio.Event(), list(waiting)
        return channel

    async with Postbox() as platform:
        ada = await platform.person("Ada")
        first, second = polled(platform), polled(platform, platform.event(ada, "hello"))
        async with serving(AgentFrameworkHost(EchoAgent(), channels=[first], store=store)):
            await first.polling.wait()
            async with serving(AgentFrameworkHost(EchoAgent(), channels=[second], store=store)):
                await second.connected.wait()
                assert not second.polling.is_set()
            assert Polled.polls == 1
        third = polled(platform, platform.event(ada, "hello"))
        async with serving(AgentFrameworkHost(EchoAgent(), channels=[third], store=store)):
            await third.polling.wait()

            async def answered() -> bool:
                return [message.text for message in await platform.shown(ada.chat_id)] == ["hello"]

            await platform.until(answered)


async def test_polling_goes_on_after_a_leadership_that_the_store_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = InMemoryStateStore()
    claim, refusals = store.leaderships.claim, iter([StoreError("full"), OSError("gone")])

    async def refused(*args: Any) -> Any:
        for error in refusals:
            raise error
        return await claim(*args)

    monkeypatch.setattr(store.leaderships, "claim", refused)
    async with Postbox() as platform:
        ada = await platform.person("Ada")
        channel = channel_on(platform, Polled, transport="polling", live="off")
        assert isinstance(channel, Polled)
        channel.polling, channel.waiting = asyncio.Event(), [platform.event(ada, "hello")]
        async with serving(AgentFrameworkHost(EchoAgent(), channels=[channel], store=store)):

            async def answered() -> bool:
                return [message.text for message in await platform.shown(ada.chat_id)] == ["hello"]

            await platform.until(answered)
    assert caplog.text.count("operation=leading the poller of postbox") == 2


@pytest.mark.parametrize(
    ("settings", "finding"),
    [
        ({"transport": "polling"}, "can't be fetched"),
        ({"transport": "pigeon"}, "transport must be 'webhook' or 'polling' or 'connection', not 'pigeon'"),
        ({"transport": "connection"}, "sends no events over a connection"),
        (
            {"transport": "connection", "public_url": "https://x"},
            "public_url has no effect with transport='connection'",
        ),
        ({"public_url": "ftp://x"}, "public_url must begin with"),
        ({"private_replies": True}, "shows nothing to one person alone"),
        ({"poll_seconds": 0}, "poll_seconds must be positive"),
        ({"media": MediaLimits(max_files=0)}, "media: max_files must be positive"),
        ({"album_seconds": -1.0}, "album_seconds must not be negative"),
    ],
)
def test_what_is_wrong_is_found_at_build(settings: dict[str, Any], finding: str) -> None:
    channel = PostboxChannel(url="https://postbox.example", token=TOKEN, secret=SECRET, **settings)
    with pytest.raises(ChannelConfigurationError, match=finding):
        AgentFrameworkHost(EchoAgent(), channels=[channel], seal_key="k" * 32)
