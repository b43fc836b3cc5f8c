"""The commands of the page about schedules, as they stand there, beside a host that runs."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

from frontdesk import AgentFrameworkHost, OperatorClient
from frontdesk.channels.web import WebChatChannel
from frontdesk_testing import EchoAgent, serving
from tests.channels.web.visiting import open_visitor
from tests.cli.processes import environment
from tests.docs.pages import ROOT, blocks
from tests.docs.running import module_of
from tests.scenarios.messages.chat import open_chat

PAGE = ROOT / "docs/guides/schedules.md"


def lines(language: str) -> list[str]:
    return [line for block in blocks(language) if block.page == PAGE for line in block.text.splitlines()]


def in_a_shell(command: str, place: Path) -> str:
    """Run a line as cron does, with the environment of the host on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["sh", "-c", command], cwd=place, env=environment({"PATH": path}), capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


async def person(state: Path) -> str:
    """Return the isolation key of the only person there is."""

    def ask() -> str:
        with OperatorClient(state) as host:
            (row,) = host.call("page", {"kind": "people"})["items"]
            return row["person"]

    return await asyncio.to_thread(ask)


async def test_what_the_page_types_reaches_the_person(tmp_path: Path) -> None:
    async with open_chat(EchoAgent(), name="telegram", state_dir=tmp_path / "state") as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hello")
        await chat.wait_for_answers(ada.chat_id, 1)
        deliver, by_person, run = [line.removeprefix("$ ") for line in lines("console")]
        by_person = by_person.replace("usr_0192f0c1a2b3", await person(tmp_path / "state"))
        morning, evening = [re.sub(r"^(\S+\s+){5}", "", line) for line in lines("text") if line[:1].isdigit()]
        for command in (deliver, by_person, run, morning, morning, evening):
            typed = command.replace("telegram 42", f"telegram {ada.user_id}").replace("cd /srv/hotel &&", "")
            await asyncio.to_thread(in_a_shell, typed.replace("\\%", "%"), tmp_path)
        heard = await chat.wait_for_answers(ada.chat_id, 6)
        assert heard[1:5] == [
            "Breakfast is served.",
            "Breakfast is served.",
            "What is on today? Answer in two sentences.",
            "Breakfast is served.",
        ]
        assert ":" in heard[5]


async def test_what_is_tried_on_this_machine_reaches_the_page(tmp_path: Path) -> None:
    (deliver,) = [line[2:] for line in lines("text") if line.startswith("$ frontdesk deliver")]
    host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel()], state_dir=tmp_path / "state")
    async with serving(host) as client, open_visitor(client.base_url) as visitor:
        await visitor.say("hello")
        await visitor.wait_for_messages(2)
        listed = await asyncio.to_thread(in_a_shell, "frontdesk people list --channel web --state state", tmp_path)
        (known,) = re.findall(r"\bvis_\w+", listed)
        told = await asyncio.to_thread(in_a_shell, re.sub(r"vis_\w+", known, deliver), tmp_path)
        assert told.startswith("It is on its way to key_")
        assert [message["text"] for message in await visitor.wait_for_messages(3)] == [
            "hello",
            "hello",
            "Breakfast is served.",
        ]


async def test_the_script_of_the_page_works(tmp_path: Path) -> None:
    (block,) = [block for block in blocks("python") if block.page == PAGE and "OperatorClient" in block.text]
    async with open_chat(EchoAgent(), name="telegram", state_dir=tmp_path / "state") as chat:
        ada = await chat.platform.user("Ada")
        text = block.text.replace('"42"', repr(ada.user_id))
        space = module_of(str(block), compile(text, str(block), "exec"))
        assert await asyncio.to_thread(space["remind"], str(tmp_path / "state")) == "completed"
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["Your taxi is here.", "What is on today?"]
