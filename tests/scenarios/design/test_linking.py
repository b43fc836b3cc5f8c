"""Scenario 6 of the design: link once, be known everywhere."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from agent_framework import Agent, Message
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk import (
    AgentFrameworkHost,
    Caller,
    Channel,
    ChannelContext,
    ChannelContribution,
    ChannelIdentity,
    ChannelRequest,
    Entra,
    OAuthIdentityLinker,
    OneTimeCodeIdentityLinker,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing.internals import get_store
from frontdesk_testing.telegram import FakeTelegram, fake_telegram
from tests.linkers.oauth.house import Browser
from tests.oidc import CLIENT_ID, CLIENT_SECRET, TENANT, OidcProvider, free_port, oidc_provider, serve_app
from tests.scenarios.design.telegram import TelegramUser, build_polling_chat
from tests.scenarios.desk import open_client
from tests.scenarios.linking.pair import open_pair
from tests.scenarios.stores import new_store


class Teams(Channel):
    """Stands in for Teams: a chat whose token proves the account of whoever writes."""

    name = "teams"
    path = "/teams"
    requires_auth_when_public = False
    emits_verified_claims = True
    session_family = "host_tracked"

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        async def endpoint(request: Request) -> Response:
            body = await request.json()
            claims = {"tid": TENANT, "oid": body["oid"]}
            identity = ChannelIdentity(self.name, body["user"])
            caller = Caller(identity=identity, claims=claims, claim_source="teams")
            hosted = await context.run(ChannelRequest(channel=self.name, input=body["text"]), caller)
            return JSONResponse({"text": hosted.result.text})

        return ChannelContribution(routes=[Route("/messages", endpoint, methods=["POST"])])


def recite(messages: Sequence[Message]) -> str:
    return " / ".join(one.text for one in messages if one.role == "user")


@dataclass
class Town:
    """A host, its chat, an identity provider, and Ada."""

    host: AgentFrameworkHost
    url: str
    fake: FakeTelegram
    ada: TelegramUser
    ran: list[str]
    """What the agent has answered."""

    async def says(self, text: str, count: int) -> str:
        self.ada.say(text)
        return (await self.ada.wait_for_answers(count))[-1]

    async def asks(self, text: str, expected: str) -> None:
        self.ada.say(text)
        await self.ada.is_told(expected)

    async def sign_in(self, said: str) -> None:
        """Goes through the ceremony behind the link in a message."""
        found = re.search(r"https?://\S+", said)
        assert found is not None, said
        house: Any = None
        browser = Browser(house)
        async with browser.http:
            back = await browser.sign_in(await browser.start(found.group()))
            asked = await browser.http.get(back)
            assert (await browser.http.post(asked.headers["location"])).status_code == 200


def _set_account(provider: OidcProvider) -> None:
    """Ada's account in the directory."""
    provider.issuer_name = f"{provider.url}/{TENANT}/v2.0"
    claims = {"iss": provider.issuer_name, "tid": TENANT, "oid": "o-ada"}
    provider.twist = lambda header, given: given.update(claims)


@asynccontextmanager
async def open_town(*, require_link: bool) -> AsyncIterator[Town]:
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(oidc_provider())
        _set_account(provider)
        fake = await stack.enter_async_context(fake_telegram())
        listener = free_port()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        linker = OAuthIdentityLinker(
            Entra(tenants=[TENANT], authority=provider.url),
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            public_url=url,
        )
        provider.client.redirect_uris = {f"{linker._base}/callback"}
        chat = build_polling_chat(fake, require_link=require_link)
        ran: list[str] = []

        def note(messages: Sequence[Message]) -> str:
            ran.append(recite(messages))
            return ran[-1]

        host = AgentFrameworkHost(
            target=Agent(client=ScriptedChatClient(note), name="Concierge"),
            channels=[chat, Teams()],
            identity_linker=linker,
            store=new_store(),
        )
        await stack.enter_async_context(serve_app(host.app, listener, lifespan="on"))
        yield Town(host, url, fake, TelegramUser.of(fake, "Ada", 42), ran)


async def test_the_first_message_is_answered_with_a_link_and_the_next_one_runs() -> None:
    async with open_town(require_link=True) as town:
        shown = await town.says("one", 1)
        assert town.url in shown
        await town.sign_in(shown)
        assert town.ran == []
        # What was refused was never said.
        await town.asks("two", "two")
        await _is_known_on_teams(town, "two / three")


async def test_the_link_is_never_shown_in_a_group() -> None:
    async with open_town(require_link=True) as town:
        group = town.fake.supergroup("Team", town.ada.user)
        town.ada.say("@frontdesk_bot hello", group)
        assert town.url not in "".join(await town.ada.wait_for_answers(1, group))
        town.fake.start(town.ada.user, "link")
        assert town.url in (await town.ada.wait_for_answers(1))[-1]


async def test_one_who_links_by_command_is_known_too() -> None:
    async with open_town(require_link=False) as town:
        assert await town.says("one", 1) == "one"
        await town.sign_in(await town.says("/link", 2))
        await town.asks("two", "one / two")
        await _is_known_on_teams(town, "one / two / three")


async def _is_known_on_teams(town: Town, expected: str) -> None:
    """The link holds the identity and the claim, and Teams proves the same claim: silently one conversation."""
    links = get_store(town.host).identities
    link = await links.link(ChannelIdentity("telegram", "42"))
    assert link is not None
    assert link.claims["oid"] == "o-ada"
    async with httpx.AsyncClient(base_url=town.url, trust_env=False) as client:
        body = {"user": "ada@corp", "oid": "o-ada", "text": "three"}
        assert (await client.post("/teams/messages", json=body)).json() == {"text": expected}
        other = {"user": "bob@corp", "oid": "o-bob", "text": "who am I?"}
        assert (await client.post("/teams/messages", json=other)).json() == {"text": "who am I?"}


async def test_a_one_time_code_links_two_chats() -> None:
    agent = Agent(client=ScriptedChatClient(recite), name="Concierge")
    async with open_pair(agent, linker=None, identity_linker=OneTimeCodeIdentityLinker()) as pair:
        assert await pair.red.says("one") == "one"
        await pair.link()
        assert await pair.blue.says("two") == "one / two"


async def test_a_resolver_makes_a_corporate_id_the_key() -> None:
    def corporate(identity: ChannelIdentity) -> str:
        return f"corp:{identity.native_id}"

    async with open_client(
        Agent(client=ScriptedChatClient(recite), name="Concierge"),
        InvocationsChannel(),
        identity_resolver=corporate,
    ) as desk:
        await desk.ask("one", session_id="s")
        assert {one.owner for one in desk.sessions()} == {"corp:anonymous"}
