"""A host is killed around the commit of an unlink: the message of a question is settled with it, or not at all."""

import signal
from pathlib import Path

import pytest

from frontdesk_testing.messages import MessagePlatform, Person
from tests.cards import outcome_in
from tests.faults.inbox.processes import Desks
from tests.faults.test_clicks_and_kills import _read, _status
from tests.scenarios.desk import until
from tests.scenarios.linking.pair import code_in
from tests.testing.messages.starting import fork_platform

UNLINK = 3
"""The commit of the unlink; before it the command is accepted and claimed."""


async def says(platform: MessagePlatform, who: Person, text: str) -> str:
    """Return what is answered first."""
    before = len(await platform.answers(who.chat_id))
    await platform.say(who, text)
    return (await platform.wait_for_answers(who.chat_id, before + 1))[before].text


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
async def test_a_kill_around_an_unlink(point: str, tmp_path: Path) -> None:
    settings = {"pays": True, "links": True}
    async with fork_platform(tmp_path / "log") as platform:
        ann, eve = await platform.user("Ann"), await platform.user("Eve")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", **settings) as desks:
            host = await desks.host()
            code = code_in(await says(platform, ann, "/link"))
            await says(platform, eve, f"/link {code}")
            await says(platform, eve, "/link confirm")
            await platform.wait_for_answers(ann.chat_id, 2)
            assert (await says(platform, ann, "/link confirm")).startswith("Done")
            await platform.wait_for_answers(eve.chat_id, 3)
            await platform.say(eve, "pay")
            asked = (await platform.wait_for_answers(eve.chat_id, 4))[3]
            assert asked.buttons
            await until(lambda: bool(_read(tmp_path / "state", "handle FROM approval_places")))
            await host.arm(point, UNLINK)
            await platform.say(ann, "/unlink")
            assert await host.wait_for_end() == -signal.SIGKILL
            is_written = point == "after_commit"
            assert _status(tmp_path / "state") == ("cancelled" if is_written else "pending")
            settling = _read(tmp_path / "state", "delivery_id FROM deliveries WHERE replaces IS NOT NULL")
            assert len(settling) == int(is_written)
            await desks.host()

            async def is_settled() -> bool:
                shown = (await platform.answers(eve.chat_id))[3]
                return (outcome_in(shown.text), shown.buttons, shown.edits) == (
                    "pay: An account that shared this conversation was unlinked.",
                    (),
                    1,
                )

            await platform.until(is_settled)
        assert not (tmp_path / "paid").exists()
