"""Each provider: whose accounts it lets in, what it calls them, and what is kept of them."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.linkers.oauth import Entra, GitHub, Google, Oidc, Provider, get_subject
from frontdesk.linkers.oauth.provider import MAX_CLAIMS_BYTES, select_claims
from tests.linkers.oauth.house import ADA, EVE, LinkingWorld, browser, open_house, query
from tests.oidc import OTHER_TENANT, TENANT, OidcProvider, oidc_provider

THIRD = "33333333-2222-3333-4444-555555555555"


def entra(*tenants: str) -> Callable[[OidcProvider], Provider]:
    return lambda provider: Entra(tenants=tenants, authority=provider.url)


def in_tenant(house: LinkingWorld, tenant: str, **changes: Any) -> None:
    """From here on somebody of a tenant signs in."""
    claims = {"iss": f"{house.provider.url}/{tenant}/v2.0", "tid": tenant, "oid": "o-1", **changes}
    house.provider.twist = lambda header, given: given.update(claims)


class TestEntra:
    async def test_one_tenant(self) -> None:
        async with oidc_provider() as provider:
            provider.issuer_name = f"{provider.url}/{TENANT}/v2.0"
            async with open_house(entra(TENANT), provider=provider) as house, browser(house) as person:
                in_tenant(house, TENANT)
                way = await person.start(await house.begin())
                assert query(way)["prompt"] == "select_account"
                back = await person.sign_in(way)
                asked = (await person.http.get(back)).headers["location"]
                assert (await person.http.post(asked)).status_code == 200
                link = await house.link()
                assert link is not None
                assert link.subject == f"entra|{TENANT}|o-1"
                assert link.claims == {"oid": "o-1", "tid": TENANT, "name": "Ada", "groups": ["staff"]}
                in_tenant(house, OTHER_TENANT)
                assert (await person.http.get(await person.come_back(identity=EVE))).status_code == 403
            assert f"/{TENANT}/v2.0/.well-known/openid-configuration" in provider.asked

    async def test_several_tenants_and_no_other(self) -> None:
        async with oidc_provider() as provider:
            provider.issuer_name = provider.url + "/{tenantid}/v2.0"
            provider.names_itself = False
            async with open_house(entra(TENANT, OTHER_TENANT), provider=provider) as house, browser(house) as person:
                for tenant, identity in ((TENANT, ADA), (OTHER_TENANT, EVE)):
                    in_tenant(house, tenant)
                    assert (await person.link(identity=identity)).status_code == 200
                    link = await house.link(identity)
                    assert link is not None
                    assert link.subject == f"entra|{tenant}|o-1"
                bad: list[tuple[str, dict[str, Any]]] = [
                    (THIRD, {}),
                    (TENANT, {"tid": OTHER_TENANT}),
                    (TENANT, {"tid": None}),
                    (TENANT, {"oid": None}),
                    (TENANT, {"oid": ""}),
                    (TENANT, {"iss": provider.url + "/{tenantid}/v2.0"}),
                    (TENANT, {"iss": provider.url}),
                ]
                stranger = EVE.replace(native_id="1")
                for tenant, changes in bad:
                    in_tenant(house, tenant, **changes)
                    answer = await person.http.get(await person.come_back(identity=stranger))
                    assert answer.status_code == 403, changes
                assert await house.link(stranger) is None
            assert "/organizations/v2.0/.well-known/openid-configuration" in provider.asked

    async def test_a_key_of_one_tenant_does_not_sign_for_another(self) -> None:
        async with oidc_provider() as provider:
            provider.issuer_name = provider.url + "/{tenantid}/v2.0"
            provider.names_itself = False
            async with open_house(entra(TENANT, OTHER_TENANT), provider=provider) as house, browser(house) as person:
                provider.listed[0]["issuer"] = f"{provider.url}/{TENANT}/v2.0"
                in_tenant(house, OTHER_TENANT)
                assert (await person.http.get(await person.come_back())).status_code == 403
                in_tenant(house, TENANT)
                assert (await person.link()).status_code == 200

    @pytest.mark.parametrize(
        "tenants", [[], [""], ["common"], ["organizations"], "common", [TENANT, "*"], [TENANT + "x"]]
    )
    def test_tenants_are_named_one_by_one(self, tenants: Any) -> None:
        with pytest.raises(ValueError, match="tenants"):
            Entra(tenants=tenants)

    @pytest.mark.parametrize(
        ("claims", "subject"),
        [
            ({"tid": TENANT, "oid": "o"}, f"entra|{TENANT}|o"),
            (
                {"tid": TENANT, "oid": "o", "iss": f"https://login.microsoftonline.com/{TENANT}/v2.0"},
                f"entra|{TENANT}|o",
            ),
            ({"tid": TENANT, "oid": "o", "iss": "https://evil.example"}, None),
            ({"tid": OTHER_TENANT, "oid": "o"}, None),
            ({"tid": TENANT}, None),
            ({"tid": TENANT, "oid": 7}, None),
            ({"tid": [TENANT], "oid": "o"}, None),
            ({"sub": "x", "email": "ada@example.com"}, None),
            ({}, None),
        ],
        ids=repr,
    )
    def test_whom_claims_speak_of(self, claims: dict[str, Any], subject: str | None) -> None:
        assert get_subject(Entra(tenants=[TENANT.upper()]), claims) == subject


class TestGoogle:
    async def test_an_account_of_a_domain(self) -> None:
        def preset(provider: OidcProvider) -> Provider:
            return Google(domains=["example.com"], issuer=provider.issuer)

        async with open_house(preset) as house, browser(house) as person:
            house.provider.twist = lambda header, claims: claims.update(hd="example.com")
            await person.link()
            link = await house.link()
            assert link is not None
            assert link.subject == f"{house.provider.issuer}|u-1"
            assert link.claims == {
                "email": "ada@example.com",
                "email_verified": True,
                "name": "Ada",
                "hd": "example.com",
            }
            for domain in ("evil.example", None, "sub.example.com"):
                house.provider.twist = lambda header, claims, domain=domain: claims.update(hd=domain)
                assert (await person.http.get(await person.come_back(identity=EVE))).status_code == 403

    def test_both_names_of_google_are_one(self) -> None:
        names = ("https://accounts.google.com", "accounts.google.com")
        found = {get_subject(Google(), {"iss": name, "sub": "7"}) for name in names}
        assert found == {"https://accounts.google.com|7"}
        assert get_subject(Google(), {"iss": "https://accounts.google.com.evil.example", "sub": "7"}) is None
        assert get_subject(Google(domains="a.example"), {"iss": names[0], "sub": "7"}) is None


class TestGitHub:
    @staticmethod
    def preset(provider: OidcProvider) -> Provider:
        return GitHub(url=provider.url, api_url=provider.url)

    async def test_an_account_by_its_number(self) -> None:
        async with open_house(self.preset) as house, browser(house) as person:
            house.provider.names_itself = False
            way = await person.start(await house.begin())
            assert "scope" not in query(way)
            assert "nonce" not in query(way)
            assert query(way)["code_challenge_method"] == "S256"
            back = await person.sign_in(way)
            asked = (await person.http.get(back)).headers["location"]
            page = await person.http.get(asked)
            assert "Your GitHub account" in page.text
            assert (await person.http.post(asked)).status_code == 200
            link = await house.link()
            assert link is not None
            assert (link.subject, link.claims) == (f"{house.provider.url}|7", {"login": "ada", "name": "Ada"})

    async def test_a_token_that_github_does_not_take(self) -> None:
        async with open_house(self.preset) as house, browser(house) as person:
            back = await person.come_back()
            house.provider.server.save_token = lambda token, request: None
            assert (await person.http.get(back)).status_code == 403
            assert await house.link() is None

    async def test_an_error_that_comes_as_a_success(self) -> None:
        from starlette.responses import JSONResponse

        async with open_house(self.preset) as house, browser(house) as person:
            back = await person.come_back()
            house.provider.answer = JSONResponse({"error": "bad_verification_code", "error_description": "x"})
            assert (await person.http.get(back)).status_code == 403

    @pytest.mark.parametrize("number", [None, 0, -1, "7", True, 7.0])
    def test_a_name_is_not_a_number(self, number: Any) -> None:
        assert get_subject(GitHub(), {"iss": "https://github.com", "id": number, "login": "ada"}) is None
        assert get_subject(GitHub(), {"id": 7}) is None


class TestOidc:
    @pytest.mark.parametrize(
        "issuer", ["", "login.example", "http://login.example", "https://a|b", "ftp://login.example"]
    )
    def test_an_issuer_is_an_https_url(self, issuer: str) -> None:
        with pytest.raises(ValueError, match="https"):
            Oidc(issuer)

    def test_it_is_openid_that_is_spoken(self) -> None:
        with pytest.raises(ValueError, match="openid"):
            Oidc("https://login.example", scopes=["email"])
        with pytest.raises(ValueError, match="algorithms"):
            Oidc("https://login.example", algorithms=["HS256"])

    @given(st.text(max_size=40), st.text(max_size=40))
    def test_no_two_accounts_have_one_subject(self, one: str, other: str) -> None:
        first, second = Oidc("https://a.example"), Oidc("https://a.example/b")
        found = [
            get_subject(provider, {"iss": issuer, "sub": name})
            for provider, issuer in ((first, "https://a.example"), (second, "https://a.example/b"))
            for name in {one, other}
        ]
        named = [subject for subject in found if subject is not None]
        assert len(set(named)) == len(named)


class TestClaims:
    def test_only_what_was_named_is_kept(self) -> None:
        assert select_claims({"a": 1, "b": 2, "c": None}, ["a", "c", "d"]) == {"a": 1, "c": None}

    @pytest.mark.parametrize(
        ("more", "is_kept"),
        [
            ({}, False),
            ({"email_verified": False}, False),
            ({"email_verified": "true"}, False),
            ({"email_verified": True}, True),
            ({"xms_edov": True}, True),
        ],
    )
    def test_an_address_needs_to_be_verified(self, more: dict[str, Any], is_kept: bool) -> None:
        assert ("email" in select_claims({"email": "ada@example.com", **more}, ["email"])) is is_kept

    def test_what_is_too_large_is_left_out_whole(self) -> None:
        many = [f"group-{number}" for number in range(2000)]
        assert select_claims({"groups": many, "name": "Ada"}, ["groups", "name"]) == {"name": "Ada"}
        half = "x" * (MAX_CLAIMS_BYTES // 2)
        assert list(select_claims({"a": half, "b": half, "c": 1}, ["a", "b", "c"])) == ["a", "c"]
