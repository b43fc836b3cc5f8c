"""A host is killed around the transactions that answer a workflow's question in a chat, or give it up."""

import signal
from pathlib import Path
from typing import Any

import pytest

from frontdesk_testing.messages import message_platform
from tests.faults.inbox.desk import wait_for_answers
from tests.faults.inbox.processes import Desks

# The event is accepted, claimed, and done.
KILLS = [(point, passes) for point in ("before_commit", "after_commit") for passes in (1, 2, 3)]
SAID = {"/cancel": "I have dropped my question.", "yes": "sure True"}


def _place(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "state") if kind == "sqlite" else request.getfixturevalue("postgres")


@pytest.mark.parametrize("text", SAID)
@pytest.mark.parametrize(("point", "passes"), KILLS)
async def test_a_kill_around_each_commit(text: str, point: str, passes: int, tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", asks=True) as desks:
            host = await desks.host()
            await platform.say(ann, "ask me")
            assert await wait_for_answers(platform, ann, 1) == ["Sure?"]
            await host.arm(point, passes)
            await platform.say(ann, text)
            assert await host.wait_for_end() == -signal.SIGKILL
            await desks.host()
            assert await wait_for_answers(platform, ann, 2) == ["Sure?", SAID[text]]
            # Whatever became of it, the question is not open any more, and the answer came once.
            await platform.say(ann, "after")
            assert await wait_for_answers(platform, ann, 3) == ["Sure?", SAID[text], "heard after"]
        # As any turn that was cut off, an answer whose end was not written is run again.
        assert set(desks.list_asked()) == (set() if text == "/cancel" else {"True"})
        if (text, point, passes) == ("yes", "after_commit", 3):
            assert desks.list_asked() == ["True"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_question_waits_for_the_next_process(kind: Any, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        place = _place(kind, request, tmp_path)
        async with Desks(kind, place, platform, tmp_path / "ledger", asks=True) as desks:
            for number, (text, said) in enumerate(SAID.items()):
                host = await desks.host()
                await platform.say(ann, "ask me")
                assert (await wait_for_answers(platform, ann, 2 * number + 1))[-1] == "Sure?"
                await host.kill()
                host = await desks.host()
                await platform.say(ann, text)
                assert (await wait_for_answers(platform, ann, 2 * number + 2))[-1] == said
                await host.kill()
        assert desks.list_asked() == ["True"]
