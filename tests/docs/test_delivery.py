"""What the page on delivery says is so."""

import asyncio
import shlex
import sys

import msgspec
import pytest

from frontdesk import errors
from frontdesk.interfaces.chat import PushTerms
from frontdesk.models.delivery import DeliveryStatus
from frontdesk.models.reply import ResponseTarget
from frontdesk_testing import serving
from tests.docs.pages import ROOT, blocks
from tests.docs.running import example
from tests.docs.test_reference import spans, tables
from tests.scenarios.desk import until

PAGE = ROOT / "docs/guides/delivery.md"
PUSH_PAGE = ROOT / "docs/write-your-own/write-a-push-channel.md"


async def test_the_example_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    host = example(ROOT / "docs/examples/delivery.py")
    screens = sys.modules["example_delivery"].SCREENS
    curl = next(block.text for block in blocks("sh") if block.page == PAGE and "screen" in block.text).splitlines()[1]
    async with serving(host) as client:
        answer = await client.http.post("/invocations", content=shlex.split(curl)[-1])
        assert answer.status_code == 202
        async with asyncio.timeout(60):
            await until(lambda: len(screens["bar"]) == 2)
    (shown,) = [block.text for block in blocks("text") if block.page == PAGE and "on the screen" in block.text]
    assert capsys.readouterr().out == shown


async def test_the_example_shows_answers_on_a_screen() -> None:
    host = example(ROOT / "docs/examples/delivery.py")
    screens = sys.modules["example_delivery"].SCREENS
    async with serving(host) as client:
        text = "the quick brown fox jumps over the lazy dog"
        answer = await client.http.post("/invocations", json={"message": text, "metadata": {"screen": "bar"}})
        assert answer.status_code == 202
        async with asyncio.timeout(60):
            await until(lambda: len(screens["bar"]) == 4)
        assert "".join(screens["bar"]) == text + f"You said: {text}"
        await client.http.post("/invocations", json={"message": text, "metadata": {"screen": "attic"}})

        async def dead() -> bool:
            return (await host.deliveries.counts()).get("dead") == 4

        await until(dead)
        reasons = {one.error for one in await host.deliveries.list(status="dead")}
        assert reasons == {"an earlier part is dead", "no_such_screen"}


def test_every_target_is_documented() -> None:
    named = {name for first, *_ in tables(PAGE)["Choose the destination"] for name in _calls(first)}
    ways = (classmethod, ResponseTarget)
    assert named == {name for name, one in vars(ResponseTarget).items() if isinstance(one, ways)}


def _calls(cell: str) -> set[str]:
    return {span.removeprefix("ResponseTarget.").partition("(")[0] for span in spans(cell)}


def test_every_state_is_documented() -> None:
    rows = tables(PAGE)["States, and dead letters"]
    assert [spans(first)[0] for first, *_ in rows] == list(DeliveryStatus.__args__)  # type: ignore[attr-defined]


def test_every_term_is_documented_with_its_default() -> None:
    rows = {spans(name)[0]: default.strip("`") for name, default, _ in tables(PUSH_PAGE)["PushTerms"]}
    terms = PushTerms()
    wanted = {one.name: repr(getattr(terms, one.name)) for one in msgspec.structs.fields(PushTerms)}
    assert rows == {**wanted, "retry": f"{terms.retry.attempts} attempts"}


def test_every_error_of_a_push_is_documented() -> None:
    named = {span for first, _ in tables(PUSH_PAGE)["What an error means"] for span in spans(first)}
    kinds = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.PushError)}
    # One that limits is nothing but one with a time.
    assert kinds - {"PushLimitedError"} == named - {"retry_after", "everywhere=True"}
