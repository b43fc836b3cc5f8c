"""One person on Telegram and elsewhere: links, deep links from groups, and answers that are delivered to Telegram."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
from agent_framework import Agent

from frontdesk import (
    AgentFrameworkHost,
    ChannelIdentity,
    ChannelRequest,
    Entra,
    OAuthIdentityLinker,
    OneTimeCodeIdentityLinker,
    ResponseTarget,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.interfaces.chat import PushTerms
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent
from frontdesk_testing.telegram import FakeTelegram, fake_telegram
from tests.linkers.oauth.house import Browser
from tests.oidc import CLIENT_ID, CLIENT_SECRET, TENANT, free_port, oidc_provider, serve_app
from tests.scenarios.design.test_linking import Teams, _set_account, recite
from tests.scenarios.stores import new_store
from tests.scenarios.telegram.bot import open_bot


async def test_in_a_group_one_is_shown_the_way_to_the_private_chat_and_no_code() -> None:
    async with open_bot(EchoAgent(), linker=OneTimeCodeIdentityLinker(), require_link=True) as bot:
        ada = bot.fake.user("Ada")
        group = bot.fake.supergroup("Team", ada)
        said = await bot.ask(ada, "@frontdesk_bot hello", group)
        assert "https://t.me/frontdesk_bot?start=link" in said
        assert not re.search(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{2}", said)
        # Ada follows the link, and has a private chat from then on.
        before = len(bot.fake.shown(bot.fake.private(ada)).answers)
        bot.fake.start(ada, "link")
        answers = await bot.answers(bot.fake.private(ada), before + 1)
        assert re.search(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{2}", answers[-1])


async def test_a_code_behind_a_link_links_nobody() -> None:
    async with open_bot(EchoAgent(), linker=OneTimeCodeIdentityLinker()) as bot:
        ada, eve = bot.fake.user("Ada"), bot.fake.user("Eve")
        code = re.search(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{2}", await bot.ask(eve, "/link"))
        assert code is not None
        bot.fake.start(ada, code.group())
        assert (await bot.answers(bot.fake.private(ada)))[0].startswith("Hello!")


@asynccontextmanager
async def serve_sign_in(fake: FakeTelegram) -> AsyncIterator[str]:
    """Serve a bot whose people sign in at a provider, beside a door whose callers prove the same account."""
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(oidc_provider())
        _set_account(provider)
        listener = free_port()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        linker = OAuthIdentityLinker(
            Entra(tenants=[TENANT], authority=provider.url),
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            public_url=url,
        )
        provider.client.redirect_uris = {f"{linker._base}/callback"}
        telegram = TelegramChannel(
            bot_token=fake.token, api_url=fake.url, transport="polling", live="off", push_terms=PushTerms()
        )
        host = AgentFrameworkHost(
            target=Agent(client=ScriptedChatClient(recite), name="Concierge"),
            channels=[telegram, Teams()],
            identity_linker=linker,
            store=new_store(),
        )
        await stack.enter_async_context(serve_app(host.app, listener, lifespan="on"))
        yield url


async def test_who_signs_in_on_telegram_is_known_to_an_api() -> None:
    async with fake_telegram() as fake, serve_sign_in(fake) as url:
        ada = fake.user("Ada")
        chat = fake.private(ada)

        async def asked(text: str) -> str:
            before = len(fake.shown(chat).answers)
            fake.say(ada, text)
            await fake.world.until(lambda: len(fake.shown(chat).answers) > before)
            return fake.shown(chat).answers[before]

        assert await asked("one") == "one"
        link = re.search(r"https?://\S+", await asked("/link"))
        assert link is not None
        house: Any = None
        browser = Browser(house)
        async with browser.http:
            back = await browser.sign_in(await browser.start(link.group()))
            question = await browser.http.get(back)
            assert (await browser.http.post(question.headers["location"])).status_code == 200
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            body = {"user": "ada@corp", "oid": "o-ada", "text": "two"}
            assert (await client.post("/teams/messages", json=body)).json() == {"text": "one / two"}


async def test_a_job_that_was_asked_for_on_the_api_is_delivered_to_telegram() -> None:
    fake = FakeTelegram()
    ada = fake.user("Ada")

    def to_ada(request: ChannelRequest, **_: Any) -> ChannelRequest:
        target = ResponseTarget.identity(ChannelIdentity("telegram", str(ada.id)))
        return request.replace(response_target=target, background=True)

    api = InvocationsChannel(run_hook=to_ada)
    async with open_bot(EchoAgent(), fake=fake, channels=[api]) as bot:
        assert await bot.ask(ada, "hello") == "hello"
        asked = await bot.http.post("/invocations", json={"message": "**count** the rooms"})
        assert asked.status_code == 202
        await bot.says(fake.private(ada), "hello", "count the rooms")
