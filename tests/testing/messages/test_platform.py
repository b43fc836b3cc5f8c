"""The platform keeps what it accepts, and sends what happened until somebody has it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from frontdesk.secret import Secret
from frontdesk_testing.messages import MessagePlatform, message_platform
from frontdesk_testing.messages.client import PlatformClient
from frontdesk_testing.messages.config import MessageConfig
from frontdesk_testing.messages.platform.http import Call, Connection, Reply
from frontdesk_testing.messages.platform.journal import read_journal
from frontdesk_testing.messages.verify import verify
from frontdesk_testing.messages.wire import Command, Commands, Event, Send
from tests.testing.messages.starting import new_platform

SECRET = "the secret of the webhook"


def client_of(platform: MessagePlatform) -> PlatformClient:
    return PlatformClient(MessageConfig(platform_url=platform.url, token=Secret(platform.token)))


class Receiver:
    """A webhook that takes what it is told to take."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.refuse = 0
        self.challenges = 0

    async def __call__(self, call: Call) -> Reply | None:
        now = float(call.headers[b"x-message-timestamp"])
        verify(call.headers, call.body, secret=Secret(SECRET), now=now, window=1)
        if b'"challenge"' in call.body:
            self.challenges += 1
            return (200, call.body) if self.challenges > 1 else (200, b"{}")
        self.got.append(msgspec.json.decode(call.body, type=Event).event_id)
        if self.refuse:
            self.refuse -= 1
            return 503, b"{}"
        return 200, b"{}"


@asynccontextmanager
async def open_receiver(platform: MessagePlatform) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(receiver), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/events"
    try:
        await client_of(platform).use_webhook(url, SECRET)
        await platform.wait_for_webhook()
        yield receiver
    finally:
        server.close()


@pytest.fixture
async def platform() -> AsyncIterator[MessagePlatform]:
    async with new_platform() as one:
        yield one


async def test_what_was_accepted_outlives_the_platform(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with message_platform(log) as platform:
        ada = await platform.user("Ada")
        sent = await client_of(platform).send(Send(chat_id=ada.chat_id, text="hello", idempotency_key="k"))
        os.kill(platform.pid, signal.SIGKILL)
    (entry,) = read_journal(log)
    assert (entry.method, entry.text, entry.message_id) == ("send", "hello", sent.message_id)
    assert entry.idempotency_key == "k"
    async with message_platform(log) as platform:
        ada = await platform.user("Ada")
        await client_of(platform).send(Send(chat_id=ada.chat_id, text="again"))
    assert [one.text for one in read_journal(log)] == ["hello", "again"]


@pytest.mark.parametrize(("options", "accepted"), [((), 1), (("--no-dedupe",), 2)])
async def test_an_idempotency_key(options: tuple[str, ...], accepted: int) -> None:
    async with new_platform(*options) as platform:
        client, ada = client_of(platform), await platform.user("Ada")
        first = await client.send(Send(chat_id=ada.chat_id, text="hello", idempotency_key="k"))
        again = await client.send(Send(chat_id=ada.chat_id, text="hello", idempotency_key="k"))
        assert (again.message_id == first.message_id, again.duplicate) == (
            (True, True) if accepted == 1 else (False, False)
        )
        assert len(platform.log_on_disk()) == len(await platform.chat(ada.chat_id)) == accepted
        assert (await platform.state()).duplicates == 2 - accepted
        assert await client.find_sent("k") == (first if accepted == 1 else again)
        assert await client.find_sent("other") is None


async def test_an_event_is_sent_again_until_it_is_taken(platform: MessagePlatform) -> None:
    await platform.set(retry_seconds=0.02)
    async with open_receiver(platform) as receiver:
        # The first challenge was answered wrongly, and asked again.
        assert receiver.challenges == 2
        receiver.refuse = 2
        event = await platform.say(await platform.user("Ada"), "hello")
        await platform.wait_for_acknowledged(event)
        assert receiver.got == [event.event_id] * 3
        (state,) = await platform.events()
        assert (state.attempts, state.answers) == (3, [503, 503, 200])
        await platform.redeliver(event)
        assert receiver.got == [event.event_id] * 4


async def test_events_of_a_chat_come_in_order_unless_told_otherwise(platform: MessagePlatform) -> None:
    async with open_receiver(platform) as receiver:
        ada = await platform.user("Ada")
        events = [await platform.say(ada, str(number)) for number in range(5)]
        await platform.wait_for_acknowledged(*events)
        assert receiver.got == [one.event_id for one in events]
        receiver.got.clear()
        await platform.set(hold=True)
        held = [await platform.say(ada, str(number)) for number in range(5)]
        assert receiver.got == []
        await platform.release(*reversed(held))
        assert receiver.got == [one.event_id for one in reversed(held)]


async def test_what_happened_before_the_webhook_is_sent_too(platform: MessagePlatform) -> None:
    event = await platform.say(await platform.user("Ada"), "hello")
    async with open_receiver(platform) as receiver:
        await platform.wait_for_acknowledged(event)
        assert receiver.got == [event.event_id]


async def test_polling_confirms_what_is_below_the_offset(platform: MessagePlatform) -> None:
    client, ada = client_of(platform), await platform.user("Ada")
    events = [await platform.say(ada, str(number)) for number in range(3)]

    async def polled(offset: int = 0, seconds: float = 0) -> list[Event]:
        return [msgspec.json.decode(one, type=Event) for _, one in await client.events(offset, seconds)]

    assert await polled() == events
    assert await polled() == events
    assert await polled(events[1].number) == events[1:]
    assert await polled() == events[1:]
    await platform.fail("reorder", method="events", times=1)
    assert await polled() == events[:0:-1]
    waiting = asyncio.create_task(polled(events[-1].number + 1, 20))
    event = await platform.say(ada, "later")
    assert await waiting == [event]


async def test_messages_overtake_each_other(platform: MessagePlatform) -> None:
    client, ada = client_of(platform), await platform.user("Ada")
    await platform.fail("reorder", method="send", times=1, user_id=ada.user_id)
    first = asyncio.create_task(client.send(Send(chat_id=ada.chat_id, text="first")))

    async def struck() -> bool:
        return (await platform.state()).struck == (1,)

    await platform.until(struck)
    await client.send(Send(chat_id=ada.chat_id, text="second"))
    await first
    assert [one.text for one in platform.log_on_disk()] == ["second", "first"]


async def test_a_slow_platform_is_slow(platform: MessagePlatform) -> None:
    client, ada = client_of(platform), await platform.user("Ada")
    await platform.fail("slow", method="send", times=1, seconds=0.2)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await client.send(Send(chat_id=ada.chat_id, text="first"))
    assert loop.time() - began >= 0.19


async def test_who_may_be_in_a_chat(platform: MessagePlatform) -> None:
    ada, bob = await platform.user("Ada"), await platform.user("Ada")
    assert (ada.name, ada.user_id == bob.user_id, ada.chat_id == bob.chat_id) == (bob.name, False, False)
    group = await platform.group("Friends", ada)
    with pytest.raises(AssertionError, match="not_a_member"):
        await platform.say(bob, "let me in", chat_id=group.chat_id)
    with pytest.raises(AssertionError, match="not_a_member"):
        await platform.say(bob, "let me in", chat_id=ada.chat_id)


@pytest.mark.parametrize("path", ["say", "click", "edit", "redeliver", "nothing", "faults", "settings"])
async def test_a_test_that_asks_for_nonsense_is_told(platform: MessagePlatform, path: str) -> None:
    answer = await platform.http.post(f"{platform.url}/control/{path}", json={"user_id": "nobody", "kind": "odd"})
    assert answer.status_code in (400, 403, 404)
    assert answer.json()["error"]["message"]


async def test_the_menu(platform: MessagePlatform) -> None:
    await client_of(platform).publish(Commands(commands=(Command(name="new", description="Anew"),)))
    assert (await platform.state()).commands == ({"name": "new", "description": "Anew"},)
    (entry,) = platform.log_on_disk()
    assert entry.commands == (Command(name="new", description="Anew"),)


async def test_the_platform_ends_with_whoever_started_it(tmp_path: Path) -> None:
    command = ["-m", "frontdesk_testing.messages", "--with-parent", "--log", str(tmp_path / "log")]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    assert (await process.stdout.readline()).startswith(b"http://127.0.0.1:")
    process.stdin.close()
    assert await process.wait() == 0


async def test_the_command_line_helps(capsys: Any) -> None:
    from frontdesk_testing.messages.platform.main import main

    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--no-dedupe" in capsys.readouterr().out
