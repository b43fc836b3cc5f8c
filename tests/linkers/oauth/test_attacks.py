"""What somebody else could send to the pages, or a provider that is not to be trusted could say."""

import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.linkers.oauth import GitHub
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import FakeClock
from tests.linkers.oauth.house import ADA, EVE, Browser, LinkingWorld, change_url, is_page, query
from tests.oidc import CLIENT_SECRET, OidcProvider


class TestMadeUpWays:
    @pytest.mark.parametrize("place", ["start", "confirm"])
    async def test_what_was_not_signed_here_is_not_looked_up(
        self, house: LinkingWorld, person: Browser, place: str
    ) -> None:
        good = (await house.begin()).rpartition("/")[2]
        made_up = [
            "x",
            "lnk_1.x",
            good[:-1],
            good + "x",
            good.upper(),
            "." + good,
            good.replace(".", ""),
            "%00",
            "a" * 999,
        ]
        for text in made_up:
            for method in ("GET", "POST"):
                answer = await person.http.request(method, f"{house.url}/link/{place}/{text}")
                is_page(answer)
                assert answer.status_code == 400

    async def test_what_is_signed_for_one_step_is_nothing_for_another(
        self, house: LinkingWorld, person: Browser
    ) -> None:
        start = (await house.begin()).rpartition("/")[2]
        back = await person.come_back()
        state = query(back)["state"]
        for url in (
            f"{house.url}/link/confirm/{start}",
            f"{house.url}/link/start/{state}",
            f"{house.url}/link/confirm/{state}",
            change_url(back, state=start),
        ):
            assert (await person.http.get(url)).status_code == 400

    @pytest.mark.parametrize(
        "tail",
        [
            "",
            "?",
            "?code=x",
            "?state=x",
            "?state=x&state=x",
            "?code=x&state=" + "a" * 9000,
            "?" + "&".join(f"p{number}=1" for number in range(30)),
            "?state=%ff%fe",
            "?state=\u00e9",
        ],
        ids=lambda value: value[:20],
    )
    async def test_a_way_back_that_is_none(self, house: LinkingWorld, person: Browser, tail: str) -> None:
        answer = await person.http.get(f"{house.url}/link/callback{tail}")
        is_page(answer)
        assert answer.status_code == 400

    async def test_a_parameter_that_comes_twice(self, house: LinkingWorld, person: Browser) -> None:
        back = await person.come_back()
        assert (await person.http.get(f"{back}&code=other")).status_code == 400
        assert (await person.http.get(back)).status_code == 303

    async def test_nothing_that_comes_is_repeated(self, house: LinkingWorld, person: Browser) -> None:
        evil = '"><script>alert(1)</script><img src=x>{{7*7}}'
        back = await person.come_back()
        places = [
            f"{house.url}/link/start/{quote(evil.replace('/', ''))}",
            change_url(back, state=evil),
            change_url(back, iss=evil),
        ]
        for place in places:
            answer = await person.http.get(place)
            is_page(answer)
            assert answer.status_code == 400
            assert not any(part in answer.text for part in ("alert(1)", "7*7", "<img"))
        second = await person.come_back()
        refused = await person.http.get(
            change_url(second, code=None, error=evil, error_description=evil, error_uri=evil)
        )
        is_page(refused)
        assert (refused.status_code, "alert(1)" in refused.text) == (403, False)

    async def test_names_can_t_become_markup(self, house: LinkingWorld, person: Browser) -> None:
        evil = ADA.replace(attributes={"name": "</dd><script>alert(1)</script>\u202e"})
        page = await person.http.get(await person.prove("mark", evil))
        is_page(page)
        assert "alert(1)" in page.text
        assert not any(part in page.text for part in ("<script", "<b>", "\u202e", "</dd><s"))

    async def test_nobody_is_sent_anywhere_else(self, house: LinkingWorld, person: Browser) -> None:
        url = await house.begin()
        tail = "?next=https://evil.example&redirect_uri=https://evil.example&return_to=//evil.example"
        way = await person.start(url + tail)
        assert query(way)["redirect_uri"] == f"{house.url}/link/callback"
        back = await person.sign_in(way)
        headers = {"host": "evil.example", "x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
        answer = await person.http.get(back + "&next=//evil.example", headers=headers)
        # With another host the browser would have no cookie; here it is sent along by hand.
        cookie = next(iter(person.http.cookies.jar))
        if answer.status_code == 403:
            headers["cookie"] = f"{cookie.name}={cookie.value}"
            answer = await person.http.get(back + "&next=//evil.example", headers=headers)
        assert answer.headers["location"].startswith(f"{house.url}/link/confirm/")

    @pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
    async def test_other_methods_do_nothing(self, house: LinkingWorld, person: Browser, method: str) -> None:
        url = await house.begin()
        assert (await person.http.request(method, url)).status_code == 405
        assert (await person.http.post(f"{house.url}/link/callback")).status_code == 405


class TestTheProvider:
    async def test_who_does_not_agree_is_not_linked(self, house: LinkingWorld, person: Browser) -> None:
        back = await person.sign_in(await person.start(await house.begin()), "nobody")
        assert query(back)["error"] == "access_denied"
        answer = await person.http.get(back)
        is_page(answer)
        assert (answer.status_code, "did not agree" in answer.text) == (403, True)
        assert (await person.http.get(back)).status_code == 410

    @pytest.mark.parametrize("changes", [{"iss": "https://evil.example"}, {"iss": None}, {"iss": ""}])
    async def test_another_provider_s_answer_is_not_taken(
        self, house: LinkingWorld, person: Browser, changes: dict[str, str | None]
    ) -> None:
        back = change_url(await person.come_back(), **changes)
        answer = await person.http.get(back)
        is_page(answer)
        assert answer.status_code == 400
        assert house.provider.asked["/token"] == 0

    async def test_a_provider_that_has_no_name_may_leave_it_out(self, house: LinkingWorld, person: Browser) -> None:
        house.provider.names_itself = False
        back = await person.come_back()
        assert "iss" not in query(back)
        assert (await person.http.get(back)).status_code == 303
        assert (
            await person.http.get(change_url(await person.come_back(), iss="https://evil.example"))
        ).status_code == 400

    @pytest.mark.parametrize(
        "changes",
        [
            {"nonce": "another"},
            {"nonce": None},
            {"aud": "another-client"},
            {"aud": ["frontdesk-client", "other"]},
            {"aud": ["frontdesk-client", "other"], "azp": "other"},
            {"azp": "other"},
            {"iss": "https://evil.example"},
            {"exp": int(time.time()) - 100},
            {"exp": None},
            {"nbf": int(time.time()) + 1_000_000},
            {"sub": None},
            {"sub": ""},
            {"sub": 7},
        ],
    )
    async def test_an_id_token_that_is_wrong(
        self, house: LinkingWorld, person: Browser, changes: dict[str, Any]
    ) -> None:
        def twist(header: dict[str, Any], claims: dict[str, Any]) -> None:
            claims.update(changes)
            for name in [name for name, value in claims.items() if value is None]:
                del claims[name]

        house.provider.twist = twist
        answer = await person.http.get(await person.come_back())
        is_page(answer)
        assert answer.status_code == 403
        assert await house.link() is None

    @pytest.mark.parametrize("header", [{"alg": "none"}, {"typ": "at+jwt"}, {"kid": "other"}, {"alg": "RS512"}])
    async def test_an_id_token_that_is_signed_wrongly(
        self, house: LinkingWorld, person: Browser, header: dict[str, Any]
    ) -> None:
        def twist(head: dict[str, Any], claims: dict[str, Any]) -> str | None:
            if header.get("alg") == "none":
                good = house.provider.sign(claims)
                return "eyJhbGciOiJub25lIn0." + good.split(".")[1] + "."
            head.update(header)
            return None

        house.provider.twist = twist
        assert (await person.http.get(await person.come_back())).status_code == 403

    @pytest.mark.parametrize("azp", [None, "frontdesk-client"])
    async def test_a_token_for_us_alone_may_say_so(self, house: LinkingWorld, person: Browser, azp: str | None) -> None:
        house.provider.twist = lambda header, claims: claims.update(
            aud=["frontdesk-client"], **({"azp": azp} if azp else {})
        )
        assert (await person.link()).status_code == 200

    @pytest.mark.parametrize("when", ["start", "back"])
    async def test_a_provider_that_is_away(self, house: LinkingWorld, person: Browser, when: str) -> None:
        url = await house.begin()
        if when == "start":
            house.provider.away = True
            answer = await person.http.post(url)
            is_page(answer)
            assert answer.status_code == 503
            assert answer.headers["retry-after"]
            # The link is still good when the provider is back.
            house.provider.away = False
            house.clock.advance(31)
            await person.start(url)
            return
        back = await person.sign_in(await person.start(url))
        house.provider.away = True
        answer = await person.http.get(back)
        is_page(answer)
        assert answer.status_code == 503
        assert await house.link() is None

    async def test_another_code_verifier_is_not_taken(self, house: LinkingWorld, person: Browser) -> None:
        mine, other = await person.come_back(), await person.come_back(identity=EVE)
        assert (await person.http.get(change_url(mine, code=query(other)["code"]))).status_code == 403

    async def test_a_wrong_client_secret_is_the_operator_s_affair(
        self, house: LinkingWorld, person: Browser, caplog: pytest.LogCaptureFixture
    ) -> None:
        house.provider.client.secret = "changed"
        answer = await person.http.get(await person.come_back())
        is_page(answer)
        assert answer.status_code == 503
        assert "invalid_client" in caplog.text
        assert CLIENT_SECRET not in caplog.text


@given(
    st.sampled_from(["/link/callback", "/link/start/{}", "/link/confirm/{}", "/link/cancel/{}"]),
    st.sampled_from(["GET", "POST", "HEAD"]),
    st.text(max_size=40),
    st.binary(max_size=80) | st.binary(max_size=40).map(lambda tail: b"state=" + tail + b"&code=x"),
    st.binary(max_size=60) | st.binary(max_size=30).map(lambda tail: b"frontdesk_link_0=" + tail),
)
async def test_whatever_comes_is_answered_with_a_page(
    place: str, method: str, text: str, asked: bytes, cookie: bytes
) -> None:
    house = LinkingWorld(OidcProvider(), FakeClock(), InMemoryStateStore())
    house.build("https://desk.example", lambda provider: GitHub())
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": place.format(text),
        "query_string": asked,
        "headers": [(b"cookie", cookie)],
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    await house(scope, receive, send)
    # A path that no route has is the host's affair.
    assert sent[0]["status"] in (400, 404, 405)
