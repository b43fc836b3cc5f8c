"""The whole ceremony: a person in a chat, a phone's browser, a provider, and a host that knows them afterwards."""

import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.linkers.oauth import OAuthIdentityLinker, Oidc
from frontdesk_testing import EchoAgent
from frontdesk_testing.messages import MessageChannel, MessagePlatform, Person
from tests.browser import Tab, chromium, need_chromium
from tests.oidc import CLIENT_ID, CLIENT_SECRET, OidcProvider, free_port, oidc_provider, serve_app
from tests.testing.messages.starting import fork_platform

CHROMIUM = need_chromium("the OAuth ceremony")


class Town:
    """A host with two chat platforms, and a provider on another site."""

    def __init__(self, provider: OidcProvider, platforms: list[MessagePlatform], tab: Any) -> None:
        self.provider, self.platforms, self.tab = provider, platforms, tab
        self.url = ""

    async def ask(self, platform: MessagePlatform, who: Person, text: str) -> str:
        """Somebody writes in their direct chat; what the bot answers."""
        before = len(await platform.answers(who.chat_id))
        await platform.say(who, text)
        return (await platform.wait_for_answers(who.chat_id, before + 1))[-1].text

    async def is_told(self, platform: MessagePlatform, who: Person, text: str, words: str) -> None:
        """Somebody writes, and is answered with these words; a notice about a link may come in between."""
        before = len(await platform.answers(who.chat_id))
        await platform.say(who, text)

        async def told() -> bool:
            return any(words in said.text for said in (await platform.answers(who.chat_id))[before:])

        await platform.until(told)

    async def link_for(self, platform: MessagePlatform, who: Person) -> str:
        """The link that the bot gives to somebody."""
        found = re.search(r"http\S+", await self.ask(platform, who, "/link"))
        assert found is not None
        return found.group()


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with contextlib.AsyncExitStack() as stack:
        # By another name for the same machine, so that the browser takes it for another site.
        provider = await stack.enter_async_context(oidc_provider("localhost"))
        platforms = [
            await stack.enter_async_context(fork_platform(tmp_path / f"{name}.jsonl")) for name in ("chat", "other")
        ]
        town = Town(provider, platforms, await stack.enter_async_context(chromium(CHROMIUM)))
        listener = free_port()
        town.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        provider.client.redirect_uris = {f"{town.url}/link/callback"}
        host = AgentFrameworkHost(
            EchoAgent(),
            channels=[
                MessageChannel(name=name, path=f"/{name}", platform_url=one.url, token=one.token, intake="polling")
                for name, one in zip(("chat", "other"), platforms, strict=True)
            ],
            linker=OAuthIdentityLinker(
                Oidc(provider.issuer, title="Example"),
                client_id=CLIENT_ID,
                client_secret=CLIENT_SECRET,
                public_url=town.url,
            ),
        )
        await stack.enter_async_context(serve_app(host.app, listener, lifespan="on"))
        yield town


async def sign_in(tab: Tab, person: str) -> None:
    await tab.page.fill("input[name=person]", person)
    await tab.page.click("text=Agree")
    await tab.page.wait_for_url("**/link/**")


async def go_through(tab: Tab, url: str, person: str = "ada") -> str:
    """From the link to the page that asks; what it says."""
    await tab.page.goto(url)
    assert await tab.fits()
    await tab.page.click("text=Continue to Example")
    await tab.page.wait_for_url("**/authorize?**")
    await sign_in(tab, person)
    assert await tab.fits()
    return await tab.text()


async def test_a_person_is_known_on_both_channels_after_signing_in(town: Town) -> None:
    first, second = town.platforms
    ada, ada_too = await first.user("Ada"), await second.user("Countess")
    await town.is_told(first, ada, "/whoami", "Not linked")
    for platform, who in ((first, ada), (second, ada_too)):
        tab = await town.tab()
        asked = await go_through(tab, await town.link_for(platform, who))
        assert "Are both of these you?" in asked
        assert f"“{who.name}” (id {who.user_id}) on " in asked
        assert "ada@example.com" in asked
        # What was in the address on the way is not there any more.
        assert "code=" not in tab.page.url
        await tab.page.click("text=Yes, link them")
        await tab.page.wait_for_selector("text=are linked")
        assert not tab.complaints
        assert await tab.page.context.cookies() == []
    await town.is_told(first, ada, "/whoami", "Linked with other")
    await town.is_told(second, ada_too, "/whoami", "Linked with chat")


async def test_who_says_no_stays_as_they_were(town: Town) -> None:
    platform = town.platforms[0]
    ada = await platform.user("Ada")
    tab = await town.tab()
    await go_through(tab, await town.link_for(platform, ada))
    await tab.page.click("text=No, leave them apart")
    await tab.page.wait_for_selector("text=Nothing was linked")
    await town.is_told(platform, ada, "/whoami", "Not linked")


async def test_a_page_of_another_site_can_t_press_our_buttons_or_frame_them(town: Town) -> None:
    platform = town.platforms[0]
    eve = await platform.user("Eve")
    url = await town.link_for(platform, eve)
    victim = await town.tab()
    await victim.page.goto(town.provider.url)
    form = f'<form method="post" action="{url}"><button>Win a prize</button></form>'
    await victim.page.set_content(form)
    await victim.page.click("text=Win a prize")
    await victim.page.wait_for_selector("text=Invalid origin")
    assert await victim.page.context.cookies() == []
    await victim.page.goto(town.provider.url)
    async with victim.page.expect_console_message(lambda said: "frame" in said.text.lower()) as complaint:
        await victim.page.set_content(f'<iframe src="{url}"></iframe>')
    assert "frame-ancestors" in (await complaint.value).text
    # The link itself is as good as before, for whoever asked for it.
    assert "Eve" in await go_through(await town.tab(), url)


async def test_a_name_does_nothing_to_the_page(town: Town) -> None:
    platform = town.platforms[0]
    evil = await platform.user("<img src=x onerror=alert(1)>")
    tab = await town.tab()
    asked = await go_through(tab, await town.link_for(platform, evil), "mark")
    assert "<img src=x onerror=alert(1)>" in asked
    assert '"><b>mark' in asked
    assert not tab.complaints
