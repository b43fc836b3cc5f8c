"""Microsoft's own validators and models, asked about our tokens and activities: `make judges`.

They are in an environment of their own (`requirements/judges.in`), and skipped elsewhere.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from frontdesk.activity.render import build_typing_activity, final_activity, message_activity, stream_activity
from frontdesk.activity.schema import Reference
from frontdesk.chat.messages import Button, OutboundFile, OutboundMessage
from frontdesk.errors import RequestError
from frontdesk_testing.activity import APP_ID
from tests.activity.senders import ISSUER, SERVICE_URL, Senders, senders
from tests.activity.test_verify import FORGED

connector: Any = pytest.importorskip("botframework.connector.auth", exc_type=ImportError)
# Its import reads `.env` of the working directory into the environment.
_before = dict(os.environ)
teams_auth: Any = pytest.importorskip("microsoft_teams.apps.auth.token_validator", exc_type=ImportError)
agents: Any = pytest.importorskip("microsoft_agents.hosting.core", exc_type=ImportError)
os.environ.clear()
os.environ.update(_before)

Judge = Callable[[str, dict[str, Any]], Awaitable[Any]]
TENANT = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"


def _judges(s: Senders, monkeypatch: pytest.MonkeyPatch) -> dict[str, Judge]:
    """Return the validators of three SDKs, with the keys of the fake."""
    from microsoft_agents.hosting.core.authorization import _entra_issuers  # pyright: ignore[reportMissingImports]
    from microsoft_agents.hosting.core.authorization.jwt import (  # pyright: ignore[reportMissingImports]
        jwt_token_validator,
    )

    metadata, keys = f"{s.fake.url}/v1/.well-known/openidconfiguration", f"{s.fake.url}/v1/.well-known/keys"
    monkeypatch.setattr(connector.ChannelValidation, "open_id_metadata_endpoint", metadata)
    monkeypatch.setitem(_entra_issuers.BOTFRAMEWORK_JWKS_URIS, ISSUER, keys)
    provider = connector.SimpleCredentialProvider(APP_ID, "")
    options = teams_auth.JwtValidationOptions(valid_issuers=[ISSUER], valid_audiences=[APP_ID], jwks_uri=keys)
    configuration = agents.AgentAuthConfiguration(client_id=APP_ID, tenant_id=TENANT)

    async def by_connector(token: str, activity: dict[str, Any]) -> Any:
        return await connector.ChannelValidation.authenticate_channel_token_with_service_url(
            f"Bearer {token}", provider, activity["serviceUrl"], activity["channelId"]
        )

    async def by_teams(token: str, activity: dict[str, Any]) -> Any:
        return await teams_auth.TokenValidator(options).validate_token(token, service_url=activity["serviceUrl"])

    async def by_agents(token: str, activity: dict[str, Any]) -> Any:
        return await jwt_token_validator.JwtTokenValidator(configuration).validate_token(token)

    return {
        name: _in_thread(judge)
        for name, judge in (("connector", by_connector), ("teams", by_teams), ("agents", by_agents))
    }


def _in_thread(judge: Judge) -> Judge:
    """Return a judge in a loop of its own. Some of them fetch keys synchronously, which would block the fake."""

    async def ask(token: str, activity: dict[str, Any]) -> Any:
        return await asyncio.to_thread(lambda: asyncio.run(cast(Any, judge(token, activity))))

    return ask


@asynccontextmanager
async def _asked(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Senders, dict[str, Judge]]]:
    async with senders() as s:
        yield s, _judges(s, monkeypatch)


@pytest.mark.parametrize("name", ["connector", "teams", "agents"])
async def test_the_token_that_we_accept_is_accepted_by_microsoft(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _asked(monkeypatch) as (s, judges):
        # The connector compares the service URL with its slash.
        token = s.token(serviceurl=SERVICE_URL)
        await s.prove(token)
        await judges[name](token, s.activity())


async def test_no_token_that_microsoft_refuses_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: dict[str, list[str]] = {"connector": [], "teams": [], "agents": [], "frontdesk": []}
    async with _asked(monkeypatch) as (s, judges):
        for case in FORGED:
            make, activity, why = case.values
            token, given = make(s), s.activity(**activity)
            judges["frontdesk"] = lambda token, _, more=activity: s.prove(token, **more)
            for name, judge in judges.items():
                try:
                    await judge(token or "", given)
                except RequestError:
                    continue
                except Exception:  # noqa: S112 - each SDK has errors of its own
                    continue
                passed[name].append(why.strip())
    print({name: len(whys) for name, whys in passed.items()}, "of", len(FORGED), passed)
    assert passed["frontdesk"] == []
    # Without these, the judges would judge nothing.
    assert all(len(passed[name]) < len(FORGED) / 2 for name in judges)


def _sent() -> list[dict[str, Any]]:
    """Return an activity of each kind that we send."""
    approve, link = Button(text="Approve", data="ok:1"), Button(text="Open", url="https://example.com")
    picture = OutboundFile(media_type="image/png", data="AAAA", name="a.png")
    sent: list[dict[str, Any]] = []
    for channel, kind in (("msteams", "personal"), ("msteams", "channel"), ("webchat", ""), ("slack", "")):
        reference = Reference(
            url=SERVICE_URL, channel=channel, conversation="a:1", bot="28:b", user="29:a", tenant="t", kind=kind
        )
        messages = [
            OutboundMessage(text="hello"),
            OutboundMessage(text="**hi**", reply_to="5"),
            OutboundMessage(text="Pay?", buttons=(approve, link)),
            OutboundMessage(media=(picture,)),
        ]
        sent += [message_activity(message, reference) for message in messages]
        sent += [final_activity(message, reference, "s") for message in messages]
        sent += [build_typing_activity(reference), stream_activity("hello", reference, sequence=1)]
        sent += [stream_activity("hello you", reference, sequence=2, stream_id="s")]
    return sent


@pytest.mark.parametrize("activity", _sent(), ids=lambda activity: f"{activity['channelId']}-{activity['type']}")
def test_what_we_send_fits_the_models_of_teams(activity: dict[str, Any]) -> None:
    from microsoft_teams.api import ActivityParams  # pyright: ignore[reportMissingImports]
    from pydantic import TypeAdapter

    adapter: Any = TypeAdapter(ActivityParams)
    read = adapter.validate_python(activity)
    again = read.model_dump(by_alias=True, exclude_none=True, mode="json")
    for name in ("type", "text", "textFormat", "replyToId"):
        assert again.get(name) == activity.get(name)
    assert len(again.get("entities") or ()) == len(activity.get("entities", ()))
    assert len(again.get("attachments") or ()) == len(activity.get("attachments", ()))
