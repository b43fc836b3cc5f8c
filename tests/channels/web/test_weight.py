"""How much the page weighs, and that long conversations and long streams cost it no more than short ones."""

import re
from typing import Any

from frontdesk import AgentFrameworkHost
from frontdesk.channels.web.mailbox import Chat
from frontdesk.channels.web.pages import assets, shell
from frontdesk_testing import serving
from tests.browser import chromium, need_chromium
from tests.channels.web.test_mailbox import SPOT, Storage, mailbox
from tests.web_soak import SLOW_3G, Chatty, OpenPage, growth, measure_opening, stream, talk

FIRST_LOAD = 100_000
LOADED = """() => performance.getEntriesByType("resource").map((one) => [one.name, one.transferSize])"""


def test_the_page_names_what_its_script_reads_first_and_loads_later() -> None:
    files = assets()
    page = shell("Chat", "/chat", "theme.css", "de").decode()
    assert '<link rel="preload" as="fetch" crossorigin href="/chat/api/me?open=main">' in page
    assert re.findall(rf'="/chat/static/{files.version}/([^"]+[.]js)"', page) == [
        "chat.de.js",
        "vendor/marked/marked.esm.js",
    ]
    assert {name for name in files.files if name.endswith(".js")} == {
        "chat.de.js",
        "chat.en.js",
        "embed.js",
        "vendor/marked/marked.esm.js",
    }


async def test_a_conversation_of_ten_thousand_messages_is_read_by_its_last_ones() -> None:
    storage = Storage()
    box = mailbox(storage)
    await box.change(SPOT.visitor, lambda head: head.with_chat(Chat(id="main", last=10_000)))
    reads: list[str] = []
    get = storage.get

    async def counted(key: str) -> object:
        reads.append(key)
        return await get(key)

    storage.get = counted  # pyright: ignore[reportAttributeAccessIssue]
    await box.page(SPOT, None, 50)
    assert len(reads) == 51


async def test_the_page_is_light_and_its_memory_stays_flat_over_a_slow_network_too() -> None:
    page = OpenPage()
    program = need_chromium("the weight of the web chat")
    async with serving(AgentFrameworkHost(Chatty(0), channels=[page])) as client, chromium(program) as new_tab:
        tab = await new_tab()
        assert await measure_opening(tab, client.base_url, page, 120) > 0
        assert await tab.page.locator(".message").count() == 50
        sizes = await stream(tab, client.base_url, 0)
        assert growth(sizes) < 3
        slow: Any = await new_tab()
        assert await talk(slow, client.base_url, SLOW_3G, ["over slow 3G"]) == ["over slow 3G"]
        loaded = await slow.page.evaluate(LOADED)
        assert all(name.startswith(client.base_url) for name, _ in loaded)
        assert 20_000 < sum(size for _, size in loaded) < FIRST_LOAD, loaded
        assert [*tab.complaints, *slow.complaints] == []
