"""Turns that end their process, and tools and edits in the midst of which it is killed."""

import asyncio
import time
from random import Random

from frontdesk_testing.messages import MessagePlatform, Person
from frontdesk_testing.messages.platform.records import Said
from tests.judge.court import Court
from tests.judge.faults.processes import start_again
from tests.judge.ledger import Approval, Message
from tests.judge.listener import SLOW

LOOKS = 150
"""How often it is looked whether something has happened that a fault waits for."""
_PAUSE = 0.1
MAX_REST_SECONDS = 60.0
"""Twice the longest time for which hosts let a message rest that has ended processes."""
SLOWEST = 5.0
"""For how many seconds a platform holds an edit."""


async def crash(court: Court, rng: Random) -> None:
    """Say something that ends whoever answers it, and let supervisors start that again until it is given up."""
    del rng
    platform = court.site.platforms["chat"]
    word, person = court.word("boom"), await platform.user(court.word("culprit"))
    court.ledger.messages[word] = Message(f"chat:{person.user_id}", word, crashes=True)
    court.culprits.append(person)
    with court.disturb():
        court.note_kill()
        await platform.say(person, f"{word} crash:always")
        progress, quiet_at = court.site.progress(), time.monotonic() + MAX_REST_SECONDS
        while time.monotonic() < quiet_at and not await platform.answers(person.chat_id):
            await asyncio.sleep(_PAUSE)
            # Each of the crashes cuts off what is under way then.
            court.note_kill()
            if court.site.progress() != progress:
                progress, quiet_at = court.site.progress(), time.monotonic() + MAX_REST_SECONDS


async def until_crashes_end(court: Court) -> None:
    """Wait until hosts have given up what ends them: until then, whoever asks anything is cut off at times."""
    platform = court.site.platforms.get("chat")

    async def missing() -> int:
        assert platform is not None
        return sum([not await platform.answers(person.chat_id) for person in court.culprits])

    if court.culprits:
        with court.disturb():
            await court.until_quiet(missing, MAX_REST_SECONDS)


async def kill_in_tool(court: Court, rng: Random) -> None:
    """Have a requester approve their own tool, and end the process in which it runs."""
    platform = court.site.platforms["chat"]
    key, person = court.word(SLOW), await platform.user(court.word("requester"))
    await platform.say(person, f"m{key} act:{key}")
    question = await _question(platform, person)
    if question is None:
        return
    approval = court.ledger.approvals[key] = Approval(key, asking=1)
    await platform.click(person, question, "Approve")
    if not await court.site.noted("held", key, within=LOOKS * _PAUSE):
        return
    process = court.site.process_of("held", key)
    if process is None:
        court.site.open(key)
        return
    async with process.changing:
        with court.disturb():
            court.note_kill()
            approval.killed = True
            await process.kill()
            court.site.open(key)
            await asyncio.sleep(rng.random() * 0.5)
            await start_again(process)
    court.cut_off.append((key, person, question.message_id))


async def kill_in_edit(court: Court, rng: Random) -> None:
    """Have a platform hold an edit that shows more of an answer, and end a process in the meantime."""
    platform = court.site.platforms["live"]
    await platform.fail("slow", method="edit", times=rng.randrange(1, 3), seconds=rng.choice((1.0, SLOWEST)))

    async def struck() -> bool:
        return sum((await platform.state()).struck) > 0

    for _ in range(LOOKS):
        if await struck():
            process = rng.choice(court.site.hosts)
            async with process.changing:
                with court.disturb():
                    court.note_kill()
                    await process.kill()
                    await start_again(process)
            break
        await asyncio.sleep(_PAUSE)
    await platform.recover()


async def _question(platform: MessagePlatform, person: Person) -> Said | None:
    for _ in range(LOOKS):
        for one in await platform.answers(person.chat_id):
            if one.buttons:
                return one
        await asyncio.sleep(_PAUSE)
    return None


async def settle(court: Court) -> None:
    """Note whether those whose tools were cut off were told what became of them."""
    platform = court.site.platforms.get("chat")

    async def is_told(person: Person, question: str) -> bool:
        assert platform is not None
        return any(one.message_id != question for one in await platform.answers(person.chat_id))

    async def missing() -> int:
        return sum([not await is_told(person, question) for _, person, question in court.cut_off])

    await court.until_quiet(missing, LOOKS * _PAUSE)
    for key, person, question in court.cut_off:
        court.ledger.cut_tools.append((f"chat:{person.user_id}: {key}", await is_told(person, question)))
