"""The linker: how it is set up, what it says, and what it keeps to itself."""

import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import LinkRefusedError, TooManyRequestsError
from frontdesk.linkers.oauth import GitHub, OAuthIdentityLinker, Oidc
from frontdesk.outbound.log_filter import quiet
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import EchoAgent
from tests.linkers.oauth.house import ADA, EVE, Browser, LinkingWorld, browser, open_house, query
from tests.oidc import CLIENT_SECRET, oidc_provider, serve_app


class TestTheLinker:
    async def test_there_is_no_code_to_enter(self, house: LinkingWorld) -> None:
        with pytest.raises(LinkRefusedError, match="browser"):
            await house.linker.complete(ADA, "123456")

    async def test_nobody_begins_all_the_time(self, house: LinkingWorld) -> None:
        for _ in range(10):
            await house.begin()
        with pytest.raises(TooManyRequestsError) as caught:
            await house.begin()
        assert caught.value.retry_after is not None
        await house.begin(EVE)
        house.clock.advance(600)
        await house.begin()

    async def test_it_knows_whose_claims_it_sees(self, house: LinkingWorld) -> None:
        issuer = house.provider.issuer
        assert house.linker.get_subject({"iss": issuer, "sub": "u-1"}) == f"{issuer}|u-1"
        assert house.linker.get_subject({"iss": "https://evil.example", "sub": "u-1"}) is None

    @pytest.mark.parametrize(
        "options",
        [
            {"client_id": ""},
            {"client_secret": ""},
            {"public_url": "http://desk.example"},
            {"public_url": "desk.example"},
            {"public_url": "https://desk.example/?a=b"},
            {"public_url": "https://me@desk.example"},
            {"path": "link"},
            {"path": "/link/"},
            {"path": "/{link}"},
            {"expires_in": 0},
            {"expires_in": 86400},
            {"max_attempts_per_identity": 0},
        ],
        ids=repr,
    )
    def test_a_mistake_is_found_when_it_is_made(self, options: dict[str, Any]) -> None:
        settings: dict[str, Any] = {"client_id": "x", "client_secret": "secret", "public_url": "https://desk.example"}
        with pytest.raises(ValueError, match="must"):
            OAuthIdentityLinker(Oidc("https://login.example"), **{**settings, **options})

    def test_without_its_libraries_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "authlib", None)
        with pytest.raises(ImportError, match=r"OAuthIdentityLinker needs .*\.\[oauth\]"):
            OAuthIdentityLinker(Oidc("https://login.example"), client_id="x", public_url="https://desk.example")

    async def test_two_providers_don_t_take_each_other_s_accounts(self, house: LinkingWorld) -> None:
        async with oidc_provider() as other, open_house(provider=other) as second, browser(second) as person:
            back = await person.come_back()
            async with browser(house) as here:
                # The callback of the one with the answer of the other: its state is not known there.
                answer = await here.http.get(back.replace(second.url, house.url))
                assert answer.status_code == 400


def all_bytes(folder: Path) -> str:
    """Whatever is in the files of a folder."""
    return b"".join(path.read_bytes() for path in folder.iterdir()).decode("latin-1")


async def test_no_code_state_or_token_gets_into_a_log_or_the_store(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore", "uvicorn.access", "uvicorn.error", "frontdesk"):
        caplog.set_level(logging.DEBUG, logger=name)
    store = SqliteStateStore(tmp_path / "frontdesk.db")
    async with open_house(store=store, server={"access_log": True}) as house:
        planted: list[str] = []
        monkeypatch.setattr(logging.getLogger("uvicorn.access"), "propagate", True)
        async with browser(house) as person:
            # What the test's own client sends and gets is not looked at here; the server has a context of its own.
            logging.getLogger("httpx").disabled = True
            try:
                with quiet():
                    url = await house.begin()
                    back = await person.sign_in(await person.start(url))
                    planted += [url.rpartition("/")[2], query(back)["code"], query(back)["state"]]
                    planted += [cookie.value or "" for cookie in person.http.cookies.jar]
                    asked = (await person.http.get(back)).headers["location"]
                    planted.append(asked.rpartition("/")[2])
                    assert (await person.http.post(asked)).status_code == 200
                    house.provider.twist = lambda header, claims: claims.update(aud="wrong")
                    assert (await person.http.get(await person.come_back())).status_code == 403
                    house.provider.client.secret = "changed"
                    assert (await person.http.get(await person.come_back())).status_code == 503
            finally:
                logging.getLogger("httpx").disabled = False
        planted += [CLIENT_SECRET, *house.provider.said]
        shown = repr(house.linker) + repr(house.linker.__dict__)
    # The provider is in the same process, and tells what it does.
    ours = "\n".join(
        f"{record.getMessage()} {record.exc_text}"
        for record in caplog.records
        if not record.name.startswith("authlib.oauth2.rfc6749.") and "/authorize?" not in record.getMessage()
    )
    assert "/link/callback" in ours
    kept = all_bytes(tmp_path)
    for secret in filter(None, planted):
        assert secret not in ours
        assert secret not in kept
        assert secret not in shown


async def test_a_host_serves_the_pages_and_its_access_log_holds_no_link(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG, logger="uvicorn.access")
    linker = OAuthIdentityLinker(GitHub(), client_id="x", public_url="https://desk.example")
    host = AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], linker=linker)
    async with serve_app(host.app, lifespan="on", access_log=True) as url:
        monkeypatch.setattr(logging.getLogger("uvicorn.access"), "propagate", True)
        link = (await linker.begin(ADA)).url
        assert link is not None
        async with httpx.AsyncClient(trust_env=False) as http:
            page = await http.get(link.replace("https://desk.example", url))
            gone = await http.get(f"{url}/link/callback?state=sta_secret&code=secret")
    assert (page.status_code, gone.status_code) == (200, 400)
    assert "GET /link/start/... " in caplog.text
    assert "GET /link/callback " in caplog.text
    assert not any(part in caplog.text for part in (link.rpartition("/")[2], "secret"))


@pytest.mark.parametrize("press", ["confirm", "cancel"])
async def test_who_began_on_a_page_is_sent_back_to_it(house: LinkingWorld, person: Browser, press: str) -> None:
    link = (await house.linker.begin_from(ADA, "/desk/chat")).url
    back = await person.http.get(await person.sign_in(await person.start(link)))
    ended = await person.http.post(back.headers["location"].replace("/confirm/", f"/{press}/"))
    assert (ended.status_code, ended.headers["location"], ended.text) == (303, "/desk/chat", "")
    assert "Max-Age=0" in ended.headers["set-cookie"]
    assert (await house.link() is not None) == (press == "confirm")


@pytest.mark.parametrize(
    "place", ["https://evil.example", "//evil.example", "/\\evil.example", "chat", "", "/a?b=c", "/a\r\nset-cookie: x"]
)
async def test_a_place_to_go_back_to_is_a_path_of_this_host(house: LinkingWorld, place: str) -> None:
    with pytest.raises(ValueError, match="path on this host"):
        await house.linker.begin_from(ADA, place)
