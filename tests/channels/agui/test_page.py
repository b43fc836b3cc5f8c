"""The page of docs/examples: a plan in the shared state, a question, and a reload."""

from frontdesk_testing import serving
from tests.agui_page import ADDRESS, open_agui_page
from tests.browser import chromium, need_chromium
from tests.docs.pages import ROOT
from tests.docs.running import example
from tests.node_program import node_with


async def test_the_page_shows_the_plan_and_the_question_and_survives_a_reload() -> None:
    node_with("@ag-ui/client", "the page with an AG-UI client")
    async with (
        serving(example(ROOT / "docs/examples/agui_page.py")) as client,
        chromium(need_chromium("the page with an AG-UI client")) as new_tab,
    ):
        page = (await new_tab()).page
        await open_agui_page(page, client.base_url)
        await page.fill("input", "Plan a weekend in Vienna")
        await page.press("input", "Enter")
        await page.wait_for_selector("#plan li")
        await page.fill("input", "Yes, book it")
        await page.press("input", "Enter")
        await page.wait_for_selector(".question")
        await page.goto(f"{ADDRESS}/agui_page.html?host={client.base_url}/agui")
        await page.get_by_role("button", name="Approve").click()
        await page.locator(".message", has_text="The Grand is booked").wait_for()
        assert await page.locator(".message").count() == 4
        assert await page.locator(".question").count() == 0
