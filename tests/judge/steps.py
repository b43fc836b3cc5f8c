"""What several cases do."""

import json
from typing import Any

from tests.judge.ledger import Ledger
from tests.judge.site import Process
from tests.judge.wire import Answer, CutError, Exchange


def parse_heard(text: str) -> list[str]:
    """The words that an answer lists."""
    return json.loads(text[text.index("{") :])["heard"] if "{" in text else []


async def turn(ledger: Ledger, host: Process, line: str, word: str, **more: Any) -> Answer:
    """Say a word in a session, and enter what is acknowledged."""
    asked = ledger.say(line, word.split()[0])
    answer = await host.post("/invocations", {"message": word, "session_id": line, **more})
    enter(ledger, line, word, asked, answer)
    return answer


def enter(ledger: Ledger, line: str, word: str, asked: int, answer: Answer) -> None:
    """Enter a turn, if it is acknowledged."""
    if answer.ok and answer.body.get("status") == "completed":
        ledger.hear(line, word.split()[0], parse_heard(answer.body["text"]), asked)


async def read(exchange: Exchange) -> Answer | None:
    """The answer, or nothing if there is none."""
    try:
        return await exchange.answer()
    except CutError:
        return None


def check(ledger: Ledger) -> None:
    """Fail with every verdict."""
    verdicts = ledger.verdicts()
    assert not verdicts, "\n".join(map(str, verdicts))
