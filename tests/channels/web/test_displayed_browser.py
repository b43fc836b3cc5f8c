"""What a person decides on in a real browser: all of it is visible, whatever the call or the workflow holds."""

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from agent_framework import (
    Agent,
    Content,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    tool,
)
from pydantic import BaseModel, Field

from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent
from tests.browser import chromium, need_chromium
from tests.channels.web.browsing import BOX, open_page, say
from tests.channels.web.visiting import web_host
from tests.invisible import invisible_characters, invisible_in

CHROMIUM = need_chromium("what a decision shows")
# Of the four thousand tags and their like, the first ones.
HOSTILE = "".join(f"x{one}" for one in invisible_characters() if not one >= "\U000e0080")
HIDDEN = "&#x202e;&#8203; <!-- one --> [two]: https://a.example 'three'"


@pytest.fixture
async def new_tab() -> AsyncIterator[Any]:
    async with chromium(CHROMIUM) as tab:
        yield tab


async def test_a_call_was_displayed_with_characters_that_nobody_sees(new_tab: Any) -> None:
    @tool(approval_mode="always_require")
    def pay(amount: str) -> str:
        """Pay."""
        return "paid"

    given = {HOSTILE: HOSTILE, "nested": {HOSTILE: [HOSTILE]}, "amount": "100\u202e001", "blanks": f"a{' ' * 9_000}b"}
    # Escaped by the model itself: what reads the JSON would bring the characters back.
    arguments = [json.dumps(given, ensure_ascii=ascii_only) for ascii_only in (True, False)]
    calls = [Content.from_function_call(f"call_{n}", "pay", arguments=one) for n, one in enumerate(arguments)]
    async with web_host(Agent(ScriptedChatClient([calls, "done"]), tools=[pay], name="payer")) as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "pay")
        await tab.page.locator(".card dl").nth(1).wait_for()
        for card in await tab.page.locator(".card").all():
            assert invisible_in(await card.evaluate("card => card.textContent")) == []
            assert await card.locator("dd").nth(2).inner_text() == "100\\u202e001"
            assert await card.locator("dd").nth(3).inner_text() == "a\\u0020*9000b"
            # Nothing of a long line is outside of the card.
            assert await card.evaluate(
                "card => [card, ...card.querySelectorAll('*')].every((one) => one.scrollWidth <= card.clientWidth)"
            )
        assert await tab.fits()


class Answer(BaseModel):
    """What the person decides."""

    way: Literal["a", "b\u202e"] = Field(title="Way \u2067 back", description="How \u200b to pay")
    ways: list[Literal["a", "b\U000e0041"]] = Field(title="Ways")


class Asker(Executor):
    """Asks for one answer of a type after the other."""

    def __init__(self) -> None:
        super().__init__("asker")

    @handler
    async def ask(self, text: str, context: WorkflowContext[str, str]) -> None:
        choices: Any = Literal["yes\u2066", "no"]
        await context.request_info({"question": f"Choose {HOSTILE}{HIDDEN}"}, choices)
        await context.request_info({"question": f"Fill {HOSTILE}{HIDDEN}"}, Answer)
        await context.request_info({"question": f"Write {HOSTILE}{HIDDEN}"}, str)

    @response_handler
    async def hear(self, asked: dict[str, Any], answer: str, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(answer)


def _build_asker() -> Workflow:
    asker = Asker()
    return WorkflowBuilder(name="asker", start_executor=asker, output_from=[asker]).build()


async def test_a_question_of_a_workflow_was_displayed_with_characters_that_nobody_sees(new_tab: Any) -> None:
    async with web_host(_build_asker) as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "ask me")
        await tab.page.locator(".message.assistant").nth(2).wait_for()
        assert await tab.page.locator(".literal").count() == 3
        for text in await tab.page.locator(".literal").all_inner_texts():
            assert text.endswith(HIDDEN)
        for message in await tab.page.locator(".message.assistant").all():
            assert invisible_in(await message.evaluate("message => message.textContent")) == []
        assert await tab.page.locator("option").all_inner_texts() == ["Choose", "a", "b\\u202e"]
        assert await tab.page.locator("label.tick").all_inner_texts() == ["a", "b\\U000e0041"]


async def test_an_entity_became_a_character_that_nobody_sees(new_tab: Any) -> None:
    async with web_host(EchoAgent()) as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "&#x202e;&#8203;&#xe0041;&#x3164;&#65;&nbsp;&#x41;")
        answer = tab.page.locator(".message.assistant.done .text")
        assert await answer.inner_text() == "&#x202e;&#8203;&#xe0041;&#x3164;A\u00a0A"


@pytest.mark.parametrize("address", ["%", "%E0%A4%A", "main/%"])
async def test_an_address_with_a_percent_sign_left_the_page_empty(new_tab: Any, address: str) -> None:
    async with web_host(EchoAgent()) as url:
        tab = await new_tab()
        await tab.page.goto(f"{url}/chat#{address}")
        await tab.page.wait_for_selector(BOX, timeout=10_000)
        await say(tab, "hello")
        await tab.page.locator(".message.assistant.done", has_text="hello").wait_for()
        await tab.page.goto(f"{url}/chat#{address}%")
        await tab.page.locator(".message.assistant.done", has_text="hello").wait_for()
        assert tab.complaints == []
