"""The ceremony from the chat to the link, and everything that must stop it on the way."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from frontdesk.linkers.oauth import OAuthIdentityLinker, Oidc
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from tests.linkers.oauth.house import ADA, EVE, Browser, LinkingWorld, browser, change_url, is_page, open_house, query


class TestTheWayThrough:
    async def test_both_sides_are_named_and_then_linked(self, house: LinkingWorld, person: Browser) -> None:
        url = await house.begin()
        first = await person.http.get(url)
        is_page(first)
        assert "“Ada L.” (id 42) on telegram" in first.text
        asked = await person.prove()
        page = await person.http.get(asked)
        is_page(page)
        assert "“Ada L.” (id 42) on telegram" in page.text
        assert "ada@example.com" in page.text
        assert await house.link() is None
        done = await person.http.post(asked)
        is_page(done)
        assert (done.status_code, "Linked" in done.text) == (200, True)
        link = await house.link()
        assert link is not None
        assert (link.linker, link.subject) == ("oauth", f"{house.provider.issuer}|u-1")
        claims = {"email": "ada@example.com", "email_verified": True, "name": "Ada", "groups": ["staff"]}
        assert link.claims == claims

    async def test_the_provider_is_asked_as_it_should_be(self, house: LinkingWorld, person: Browser) -> None:
        asked = query(await person.start(await house.begin()))
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert asked["redirect_uri"] == f"{house.url}/link/callback"
        assert set(asked["scope"].split()) == {"openid", "profile", "email"}
        assert len(asked["code_challenge"]) == len(asked["nonce"]) == 43
        again = query(await person.start(await house.begin()))
        assert not {asked[name] for name in ("state", "nonce", "code_challenge")} & set(again.values())

    async def test_two_identities_of_one_account_become_one_person(self, house: LinkingWorld, person: Browser) -> None:
        other = EVE.replace(channel="discord")
        for identity in (ADA, other):
            assert (await person.link(identity=identity)).status_code == 200
        links = [await house.link(identity) for identity in (ADA, other)]
        assert links[0] is not None
        assert links[1] is not None
        assert links[0].isolation_key == links[1].isolation_key

    async def test_it_can_be_undone(self, house: LinkingWorld, person: Browser) -> None:
        await person.link()
        await house.linker.unlink(ADA)
        assert await house.link() is None

    async def test_no_links_nothing(self, house: LinkingWorld, person: Browser) -> None:
        asked = await person.prove()
        answer = await person.http.post(asked.replace("/confirm/", "/cancel/"))
        is_page(answer)
        assert "were not linked" in answer.text
        assert (await person.http.post(asked)).status_code == 410
        assert await house.link() is None

    async def test_every_step_may_be_made_by_another_process(self, house: LinkingWorld, person: Browser) -> None:
        def anew() -> None:
            house.build(house.url, lambda provider: Oidc(provider.issuer))

        url = await house.begin()
        anew()
        way = await person.start(url)
        anew()
        back = await person.sign_in(way)
        anew()
        asked = (await person.http.get(back)).headers["location"]
        anew()
        assert (await person.http.get(asked)).status_code == 200
        anew()
        assert (await person.http.post(asked)).status_code == 200
        assert await house.link() is not None

    async def test_an_identity_of_one_account_is_not_given_to_another(
        self, house: LinkingWorld, person: Browser
    ) -> None:
        await person.link("ada")
        asked = await person.prove("bob")
        answer = await person.http.post(asked)
        is_page(answer)
        assert (answer.status_code, "Unlink it first" in answer.text) == (403, True)
        link = await house.link()
        assert link is not None
        assert link.subject == f"{house.provider.issuer}|u-1"

    async def test_two_tabs_don_t_disturb_each_other(self, house: LinkingWorld, person: Browser) -> None:
        ways = [await person.start(await house.begin(identity)) for identity in (ADA, EVE)]
        backs = [await person.sign_in(way, who) for way, who in zip(ways, ("ada", "bob"), strict=True)]
        for back in backs:
            asked = (await person.http.get(back)).headers["location"]
            assert (await person.http.post(asked)).status_code == 200
        found = [await house.link(identity) for identity in (ADA, EVE)]
        assert [link and link.subject and link.subject[-3:] for link in found] == ["u-1", "u-2"]

    async def test_on_sqlite_under_a_path_and_as_a_public_client(self, tmp_path: Path) -> None:
        store = SqliteStateStore(tmp_path / "frontdesk.db")
        async with open_house(store=store, base="/desk", path="/join", client_secret=None, name="company") as house:
            house.provider.client.methods = {"none"}
            async with browser(house) as person:
                way = await person.start(await house.begin())
                (cookie,) = person.http.cookies.jar
                assert cookie.path == "/desk/join"
                back = await person.sign_in(way)
                assert back.startswith(f"{house.url}/join/callback?")
                asked = (await person.http.get(back)).headers["location"]
                assert (await person.http.post(asked)).status_code == 200
            link = await house.link()
            assert link is not None
            assert link.linker == "company"

    @pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
    async def test_the_secret_is_shown_as_the_provider_wants_it(self, method: Any) -> None:
        for asked in (None, method):
            async with open_house(lambda provider, asked=asked: Oidc(provider.issuer, auth_method=asked)) as house:
                # Held to one of them, though it says that it takes both.
                house.provider.document = {"token_endpoint_auth_methods_supported": [method]} if asked is None else {}
                house.provider.client.methods = {method}
                async with browser(house) as person:
                    assert (await person.link()).status_code == 200

    async def test_bug_a_provider_that_takes_both_ways_held_its_client_to_the_usual_one(
        self, house: LinkingWorld, person: Browser
    ) -> None:
        both = ["client_secret_post", "client_secret_basic"]
        house.provider.document = {"token_endpoint_auth_methods_supported": both}
        house.provider.client.methods = {"client_secret_basic"}
        assert (await person.link()).status_code == 200

    async def test_claims_can_be_asked_for_apart(self) -> None:
        def small(header: dict[str, Any], claims: dict[str, Any]) -> None:
            for name in ("email", "email_verified", "name", "groups"):
                claims.pop(name, None)

        async with open_house(lambda provider: Oidc(provider.issuer, userinfo=True)) as house, browser(house) as person:
            house.provider.twist = small
            await person.link()
            link = await house.link()
            assert link is not None
            assert link.claims["groups"] == ["staff"]
            # What it says about somebody else is not taken.
            house.provider.people["bob"]["sub"] = "u-9"
            house.provider.twist = lambda header, claims: claims.update(sub="u-2")
            assert (await person.http.get(await person.come_back("bob", EVE))).status_code == 403
            assert await house.link(EVE) is None

    async def test_an_address_that_was_not_verified_is_not_kept(self, house: LinkingWorld, person: Browser) -> None:
        await person.link("bob")
        link = await house.link()
        assert link is not None
        assert link.claims == {"email_verified": False, "name": "Bob"}


class TestWhatCountsOnce:
    async def test_a_link_that_was_used_has_ended(self, house: LinkingWorld, person: Browser) -> None:
        url = await house.begin()
        await person.start(url)
        for answer in (await person.http.get(url), await person.http.post(url)):
            is_page(answer)
            assert answer.status_code == 410

    async def test_looking_at_a_link_does_not_use_it_up(self, house: LinkingWorld, person: Browser) -> None:
        url = await house.begin()
        for _ in range(3):
            assert (await person.http.get(url)).status_code == 200
            assert (await person.http.head(url)).status_code == 405
        assert await person.start(url)

    async def test_the_way_back_can_be_gone_once(self, house: LinkingWorld, person: Browser) -> None:
        back = await person.come_back()
        assert (await person.http.head(back)).status_code == 405
        assert (await person.http.get(back)).status_code == 303
        again = await person.http.get(back)
        is_page(again)
        assert again.status_code == 410
        assert house.provider.asked["/token"] == 1

    async def test_of_two_presses_of_the_button_one_counts(self, house: LinkingWorld, person: Browser) -> None:
        url = await house.begin()
        answers = await asyncio.gather(*(person.http.post(url) for _ in range(4)))
        assert sorted(answer.status_code for answer in answers) == [200, 410, 410, 410]

    async def test_of_two_who_come_back_at_once_one_goes_on(self, house: LinkingWorld, person: Browser) -> None:
        back = await person.come_back()
        answers = await asyncio.gather(*(person.http.get(back) for _ in range(5)))
        assert sorted(answer.status_code for answer in answers) == [303, 410, 410, 410, 410]
        assert house.provider.asked["/token"] == 1

    async def test_of_two_clicks_one_counts(self, house: LinkingWorld, person: Browser) -> None:
        asked = await person.prove()
        answers = await asyncio.gather(*(person.http.post(asked) for _ in range(4)))
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses[0] == 200
        assert set(statuses[1:]) <= {403, 410}
        assert await house.link() is not None

    async def test_a_code_that_was_used_elsewhere_proves_nothing(self, house: LinkingWorld, person: Browser) -> None:
        first, second = await person.come_back(), await person.come_back()
        code = query(first)["code"]
        assert (await person.http.get(first)).status_code == 303
        assert (await person.http.get(change_url(second, code=code))).status_code == 403

    async def test_everything_ends_after_a_while(self, house: LinkingWorld, person: Browser) -> None:
        url, back, asked = await house.begin(), await person.come_back(), await person.prove()
        house.clock.advance(601)
        for method, place in (("GET", url), ("POST", url), ("GET", back), ("GET", asked), ("POST", asked)):
            answer = await person.http.request(method, place)
            is_page(answer)
            assert answer.status_code == 410
        assert await house.link() is None


class TestWhoGoesOn:
    async def test_the_way_back_is_for_the_browser_that_began(self, house: LinkingWorld, person: Browser) -> None:
        back = await person.come_back()
        async with browser(house) as other:
            for _ in range(2):
                answer = await other.http.get(back)
                is_page(answer)
                assert (answer.status_code, "Different browser" in answer.text) == (403, True)
            # A cookie of a ceremony of its own does not help.
            await other.start(await house.begin(EVE))
            (cookie,) = other.http.cookies.jar
            name = next(iter(person.http.cookies.jar)).name
            answer = await other.http.get(back, headers={"cookie": f"{name}={cookie.value}"})
            assert answer.status_code == 403
        assert house.provider.asked["/token"] == 0
        # Nothing of it was used up: the right one can still go on.
        assert (await person.http.get(back)).status_code == 303

    async def test_the_answer_is_for_the_browser_that_began(self, house: LinkingWorld, person: Browser) -> None:
        asked = await person.prove()
        async with browser(house) as other:
            for answer in (
                await other.http.get(asked),
                await other.http.post(asked),
                await other.http.post(asked.replace("/confirm/", "/cancel/")),
            ):
                assert answer.status_code == 403
                assert "ada@example.com" not in answer.text
        assert await house.link() is None

    async def test_a_link_sent_to_a_victim_names_the_one_who_sent_it(
        self, house: LinkingWorld, person: Browser
    ) -> None:
        asked = await person.prove("ada", EVE)
        page = await person.http.get(asked)
        assert "“Eve” (id 666) on telegram" in page.text
        assert "ada@example.com" in page.text
        assert await house.link(EVE) is None

    @pytest.mark.parametrize(
        "headers",
        [
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"sec-fetch-site": "none"},
            {"origin": "https://evil.example"},
            {"origin": "https://evil.example", "sec-fetch-site": "same-origin"},
        ],
        ids=repr,
    )
    async def test_a_page_of_somebody_else_presses_no_button(
        self, house: LinkingWorld, person: Browser, headers: dict[str, str]
    ) -> None:
        url, asked = await house.begin(EVE), await person.prove()
        for place in (url, asked, asked.replace("/confirm/", "/cancel/")):
            answer = await person.http.post(place, headers=headers)
            is_page(answer)
            assert answer.status_code == 403
        assert await house.link() is None
        assert (await person.http.post(asked)).status_code == 200

    async def test_the_mark_of_a_browser_is_kept_from_scripts_and_other_sites(
        self, house: LinkingWorld, person: Browser
    ) -> None:
        url = await house.begin()
        answer = await person.http.post(url)
        marks = answer.headers["set-cookie"].split("; ")
        assert {"HttpOnly", "SameSite=Lax", "Path=/link", "Max-Age=600"} <= set(marks)
        assert "Secure" not in marks
        linker = OAuthIdentityLinker(Oidc("https://a.example"), client_id="x", public_url="https://desk.example/")
        assert linker._cookie("a", "b", 1).endswith("; Secure")
