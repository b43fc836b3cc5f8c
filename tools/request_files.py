"""Count the files of the package that run during five requests, and the calls that change the top-level package.

    python -m tools.request_files

Each request runs four times in this process, against one served host. The first time warms the caches. The table counts
what ran in each of the other three, from the first byte until everything that follows has been sent. Periodic work of
the host is not part of every run, so it is not counted.
"""

import argparse
import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from agent_framework import Agent, Content, Message, tool

import frontdesk
from frontdesk import AgentFrameworkHost, ApprovalOptions, ApproverRule, ChannelIdentity
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.chat.connection import webhook_url
from frontdesk.interfaces.chat import LiveMode
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent, GatedAgent, serving
from frontdesk_testing.telegram import FakeTelegram, fake_telegram
from frontdesk_testing.telegram.records import User

PACKAGE = Path(frontdesk.__file__).parent
MODEL = "scripted.py"
"""The model of the requests, which is not part of the host."""
_SECRET = "the-secret-of-the-webhook"  # noqa: S105 - it opens nothing but a fake
_QUIET_SECONDS = 0.2
"""A request has ended when no new function has run for this time."""
_TIMES = 4


@dataclass
class RequestFiles:
    """The files that ran during a request, and the calls between top-level packages."""

    files: set[str] = field(default_factory=set[str])
    crossings: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Pairs of functions of different top-level packages of which the first has called the second."""


class FileRecorder:
    """Collects the functions of the package that run, in every thread that starts while it is installed."""

    def __init__(self) -> None:
        self.runs: list[RequestFiles] = []
        self._active = False

    def start(self) -> None:
        """Start the count of one run."""
        self.runs.append(RequestFiles())
        self._active = True

    async def settle(self) -> None:
        """Wait until no new function has run for a while, and end the count of this run."""
        counted, before = self.runs[-1], (-1, -1)
        while before != (now := (len(counted.files), len(counted.crossings))):
            before = now
            await asyncio.sleep(_QUIET_SECONDS)
        self._active = False

    def result(self) -> RequestFiles:
        """Return what ran every time, without the first time."""
        warm = self.runs[1:]
        return RequestFiles(
            set[str].intersection(*(run.files for run in warm)),
            set[tuple[str, str]].intersection(*(run.crossings for run in warm)),
        )

    def _note_call(self, frame: FrameType, event: str, _argument: Any) -> None:
        if not self._active or event != "call" or (file := _file_of(frame)) is None:
            return
        counted = self.runs[-1]
        counted.files.add(file)
        caller = frame.f_back
        while caller is not None and (calling := _file_of(caller)) is None:
            caller = caller.f_back
        if caller is not None and _package_of(calling or "") != _package_of(file):
            counted.crossings.add((_function_of(caller, calling or ""), _function_of(frame, file)))

    @contextmanager
    def install(self) -> Iterator["FileRecorder"]:
        """Install the profile functions, and remove them at the end."""
        before = sys.getprofile()
        threading.setprofile(self._note_call)
        sys.setprofile(self._note_call)
        try:
            yield self
        finally:
            sys.setprofile(before)
            threading.setprofile(None)


_files: dict[str, str | None] = {}


def _file_of(frame: FrameType) -> str | None:
    code = frame.f_code
    path = code.co_filename
    if path not in _files:
        inside = Path(path).is_relative_to(PACKAGE) and not Path(path).is_relative_to(PACKAGE / "testing")
        name = Path(path).relative_to(PACKAGE).as_posix() if inside else None
        _files[path] = None if name == MODEL else name
    # The statements of a module run when it is first imported, which says nothing about the request.
    return None if code.co_name == "<module>" else _files[path]


def _package_of(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


def _function_of(frame: FrameType, file: str) -> str:
    return f"{file}:{frame.f_code.co_qualname}"


async def responses_json(recorder: FileRecorder) -> None:
    """Send a Responses request, answered as one JSON object."""
    async with serving(AgentFrameworkHost(target=EchoAgent(), channels=[ResponsesChannel()])) as client:
        for _ in range(_TIMES):
            recorder.start()
            (await client.http.post("/v1/responses", json={"input": "good day"})).raise_for_status()
            await recorder.settle()


async def background_run(recorder: FileRecorder) -> None:
    """Send a background run over Invocations, and read it until it has completed."""
    async with serving(AgentFrameworkHost(target=EchoAgent(), channels=[InvocationsChannel()])) as client:
        for _ in range(_TIMES):
            recorder.start()
            run = await client.invoke("good day", background=True)
            while run["status"] != "completed":
                await asyncio.sleep(0.01)
                found = await client.http.get(f"/invocations/{run['id']}")
                run = found.raise_for_status().json()
            await recorder.settle()


@dataclass
class Bot:
    """A served host with a bot on a fake Telegram."""

    fake: FakeTelegram
    host: AgentFrameworkHost

    async def wait_for_answers(self, user: User, count: int) -> None:
        """Wait until the bot has sent a person so many messages."""
        chat = self.fake.private(user)
        await self.fake.until(lambda: len(self.fake.shown(chat).answers) >= count)


@asynccontextmanager
async def _bot(target: Any, fake: FakeTelegram, live: LiveMode, **settings: Any) -> AsyncIterator[Bot]:
    async with fake_telegram(fake):
        channel = TelegramChannel(
            bot_token=fake.token, api_url=fake.url, transport="webhook", secret_token=_SECRET, live=live
        )
        host = AgentFrameworkHost(target=target, channels=[channel], **settings)
        async with serving(host) as client:
            await fake.until(lambda: fake.list_calls("setMyCommands"))
            # The address is known only when the host is served.
            await channel.register(webhook_url(client.base_url, (channel.path, channel.webhook_path)) or "")
            yield Bot(fake, host)


async def live_message(recorder: FileRecorder) -> None:
    """Send a Telegram message whose answer is shown while it is written, and edited at its end."""
    fake, agent, said = FakeTelegram(), GatedAgent(), "good day to all of you"
    ada = fake.user("Ada")
    async with _bot(agent, fake, "always") as bot:
        for number in range(1, _TIMES + 1):
            agent.release.clear()
            recorder.start()
            fake.say(ada, said)
            # The agent waits after its first word until that word is shown.
            await bot.wait_for_answers(ada, number)
            agent.release.set()
            await fake.until(lambda: fake.shown(fake.private(ada)).answers[-1] == said)
            await recorder.settle()


@tool(approval_mode="always_require")
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def _reply(messages: Any) -> Any:
    last: Message = messages[-1]
    results = [str(content.result) for content in last.contents if content.type == "function_result"]
    return results[0] if results else [Content.from_function_call("call-1", "pay", arguments=json.dumps({"amount": 5}))]


async def decision(recorder: FileRecorder) -> None:
    """Press a button as the approver of another person's request; the run continues and answers."""
    fake = FakeTelegram()
    ada, bob = fake.user("Ada"), fake.user("Bob")
    for person in (ada, bob):
        fake.private(person)
    rule = ApproverRule(approvers=[ChannelIdentity(channel="telegram", native_id=str(bob.id))])
    agent = Agent(client=ScriptedChatClient(_reply), name="Cashier", tools=[pay])
    async with _bot(agent, fake, "off", approvals=ApprovalOptions(default=rule)) as bot:
        for number in range(1, _TIMES + 1):
            fake.say(ada, "pay 5")
            await bot.wait_for_answers(bob, number)
            await bot.wait_for_answers(ada, 2 * number - 1)
            recorder.start()
            question = [message for message in fake.private(bob).messages.values() if message.markup][-1]
            fake.press(bob, question, "Approve")
            await bot.wait_for_answers(ada, 2 * number)
            await recorder.settle()


async def proactive_delivery(recorder: FileRecorder) -> None:
    """Call `host.deliver` for a person on Telegram."""
    fake = FakeTelegram()
    ada = fake.user("Ada")
    fake.private(ada)
    async with _bot(EchoAgent(), fake, "off") as bot:
        for number in range(1, _TIMES + 1):
            recorder.start()
            await bot.host.deliver(ChannelIdentity(channel="telegram", native_id=str(ada.id)), "Your taxi is here.")
            await bot.wait_for_answers(ada, number)
            await recorder.settle()


REQUESTS: dict[str, Callable[[FileRecorder], Coroutine[Any, Any, None]]] = {
    "Responses request, JSON": responses_json,
    "Telegram update, live message": live_message,
    "decision by another person": decision,
    "background run over Invocations": background_run,
    "`host.deliver` to Telegram": proactive_delivery,
}


def count(name: str) -> RequestFiles:
    """Run one request, and return what it ran."""
    with FileRecorder().install() as recorder:
        asyncio.run(REQUESTS[name](recorder))
    return recorder.result()


def main() -> None:
    """Print the table, and the files of each request if they are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="print the files of each request too")
    options = parser.parse_args()
    print("| request | files | layer changes |")
    print("| --- | --- | --- |")
    for name in REQUESTS:
        counted = count(name)
        print(f"| {name} | {len(counted.files)} | {len(counted.crossings)} |", flush=True)
        if options.files:
            print("\n".join(f"    {file}" for file in sorted(counted.files)))


if __name__ == "__main__":
    main()
