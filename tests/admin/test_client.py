"""A script speaks through the host that runs beside it: what arrives, once, with a line in the audit log."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from frontdesk import ChannelIdentity, NativeIdAllowlist, OperatorClient, OperatorError
from frontdesk_testing import EchoAgent
from tests.cli.processes import frontdesk
from tests.scenarios.messages.chat import open_chat

T = TypeVar("T")


async def beside(place: Path, work: Callable[[OperatorClient], T]) -> T:
    """Return what a script does with the client, in a thread of its own."""

    def script() -> T:
        with OperatorClient(place, by="cron") as host:
            return work(host)

    return await asyncio.to_thread(script)


def actions(host: OperatorClient) -> list[tuple[str, str, str]]:
    lines = host.call("page", {"kind": "audit"})["items"]
    return [(line["action"], line["subject"], line["by"]) for line in lines]


async def test_a_script_delivers_once_while_the_host_runs(tmp_path: Path) -> None:
    async with open_chat(EchoAgent(), state_dir=tmp_path / "state") as chat:
        ada = await chat.platform.user("Ada")
        to = ChannelIdentity(chat.channel.name, ada.user_id)

        def deliver(host: OperatorClient) -> Any:
            return host.deliver(to, "Your taxi is here.", idempotency_key="taxi 17")

        first = await beside(tmp_path / "state", deliver)
        assert await beside(tmp_path / "state" / "frontdesk.sock", deliver) == first
        assert await chat.wait_for_answers(ada.chat_id, 1) == ["Your taxi is here."]
        again = await beside(tmp_path / "state", lambda host: host.deliver(first["person"], "It waits."))
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["Your taxi is here.", "It waits."]
        assert await beside(tmp_path / "state", actions) == [
            ("delivered", again["deliveries"][0], "operator:cron"),
            ("delivered", first["deliveries"][0], "operator:cron"),
        ]


async def test_a_script_runs_the_target_for_a_person_and_the_answer_reaches_them(tmp_path: Path) -> None:
    async with open_chat(EchoAgent(), state_dir=tmp_path / "state") as chat:
        ada = await chat.platform.user("Ada")
        to = ChannelIdentity(chat.channel.name, ada.user_id)

        def run(host: OperatorClient) -> Any:
            begun = host.run(to, "the news of the day", idempotency_key="news 17")
            return begun, host.wait(begun["run_id"], person=begun["person"])

        begun, ended = await beside(tmp_path / "state", run)
        assert (ended["status"], begun["existed"]) == ("completed", False)
        assert "the news of the day" in json.dumps(ended["result"])
        assert await chat.wait_for_answers(ada.chat_id, 1) == ["the news of the day"]
        again, _ = await beside(tmp_path / "state", run)
        assert (again["run_id"], again["existed"]) == (begun["run_id"], True)
        assert set(await beside(tmp_path / "state", actions)) == {("run_requested", begun["run_id"], "operator:cron")}
        assert await chat.wait_for_answers(ada.chat_id, 1) == ["the news of the day"]


async def test_the_commands_do_the_same(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    async with open_chat(EchoAgent(), state_dir=state) as chat:
        ada = await chat.platform.user("Ada")
        to = ("--to", chat.channel.name, ada.user_id)
        sent = await asyncio.to_thread(frontdesk, "deliver", "-", *to, "--state", state, stdin="It rains.")
        assert (sent.returncode, sent.stderr) == (0, "")
        assert await chat.wait_for_answers(ada.chat_id, 1) == ["It rains."]
        asked = await asyncio.to_thread(frontdesk, "run", "the news", *to, "--state", state, "--wait", "60")
        assert (asked.returncode, asked.stdout) == (0, "the news\n")
        begun = await asyncio.to_thread(frontdesk, "run", "more", *to, "--socket", f"{state}/frontdesk.sock")
        assert begun.stdout.endswith(" is begun.\n")
        assert await chat.wait_for_answers(ada.chat_id, 3) == ["It rains.", "the news", "more"]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"to": {"channel": "nowhere", "id": "1"}, "text": "x", "by": "a"}, "invalid_request"),
        ({"to": {"channel": "messages"}, "text": "x", "by": "a"}, "invalid_request"),
        ({"to": {"person": "usr_1"}, "text": "x", "by": "a"}, "invalid_request"),
        ({"to": {"channel": "messages", "id": "1"}, "text": " ", "by": "a"}, "invalid_request"),
        ({"to": {"channel": "messages", "id": "1"}, "text": "x"}, "invalid_request"),
        ({"to": {"channel": "messages", "id": "1"}, "text": "x", "by": ""}, "invalid_request"),
        ({"to": {"channel": "messages", "id": "1"}, "text": "x", "by": "a", "idempotency_key": ""}, "invalid_request"),
        ({"to": {"channel": "messages", "id": "stranger"}, "text": "x", "by": "a"}, "denied"),
    ],
)
async def test_what_can_t_be_run_is_refused(given: dict[str, Any], code: str, tmp_path: Path) -> None:
    allowed = NativeIdAllowlist(["1"])
    async with open_chat(EchoAgent(), state_dir=tmp_path / "state", allowlist=allowed):
        with pytest.raises(OperatorError) as refused:
            await beside(tmp_path / "state", lambda host: host.call("run", given))
        assert refused.value.code == code


async def test_those_who_may_not_come_in_are_not_spoken_to(tmp_path: Path) -> None:
    async with open_chat(EchoAgent(), state_dir=tmp_path / "state", allowlist=NativeIdAllowlist(["1"])) as chat:
        to = ChannelIdentity(chat.channel.name, "stranger")
        with pytest.raises(OperatorError) as refused:
            await beside(tmp_path / "state", lambda host: host.deliver(to, "Hello"))
        assert refused.value.code == "denied"
        assert await beside(tmp_path / "state", actions) == []


def test_without_a_host_nothing_is_sent(tmp_path: Path) -> None:
    with pytest.raises(OperatorError) as missing:
        OperatorClient(tmp_path)
    assert missing.value.code == "no_host"
    ended = frontdesk("deliver", "Hello", "--to", "chat", "1", "--state", str(tmp_path))
    assert ended.returncode == 1
    assert "requires a running host" in ended.stderr
    ended = frontdesk("run", "Hello", "--to", "chat", "1", "--state", "postgresql://nowhere/db")
    assert (ended.returncode, "admin_socket=" in ended.stderr) == (1, True)
