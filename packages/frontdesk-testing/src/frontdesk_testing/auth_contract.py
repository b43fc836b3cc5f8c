"""The contract of every `auth` of a channel.

class TestMyAuth(AuthContract):
    secrets = ("hunter2...",)

    @pytest.fixture
    def auth(self):
        return MyAuth({"alice": "hunter2...", "bob": "..."})

    def right(self, auth):
        return [{"x-mine": "hunter2..."}, {"x-mine": "..."}]

    def wrong(self, auth):
        return [{"x-mine": "wrong"}]
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from frontdesk.auth.verifier import HttpVerifier
from frontdesk.errors import UnauthenticatedError
from frontdesk.interfaces.auth import HttpAuth, OneAuth, Principal, RequestAuth
from frontdesk.models.identity import ANONYMOUS

Credentials = Mapping[str, str]

NOISE = (b"", b" ", b"x", b"\xff\xfe\x00", b"anonymous", b"null", b"0" * 64, b"Bearer", b"Bearer x", b"x" * 20_000)


class AuthContract:
    """The contract of every kind of credentials."""

    pytestmark = pytest.mark.asyncio

    method = "POST"
    path = "/invocations?a=b"
    secrets: Sequence[str] = ()
    """Texts that must never be shown."""

    def right(self, auth: Any) -> Sequence[Credentials]:
        """Return the headers of two different principals, valid for a request with `method` to `path`."""
        raise NotImplementedError

    def wrong(self, auth: Any) -> Sequence[Credentials]:
        """Return headers with credentials of this kind that are not valid."""
        raise NotImplementedError

    async def ask(self, auth: OneAuth, headers: Mapping[bytes, bytes]) -> Principal | None:
        """Return the principal of a request, or `None`."""
        path, _, query = self.path.partition("?")
        scope = {
            "type": "http",
            "method": self.method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "client": ("127.0.0.1", 4242),
        }
        if isinstance(auth, RequestAuth):
            return await auth.authenticate_request(scope, headers)
        return await auth.authenticate(headers)

    async def test_it_can_be_asked(self, auth: OneAuth) -> None:
        assert isinstance(auth, (HttpAuth, RequestAuth))
        assert auth.name
        HttpVerifier("web", auth)

    async def test_nobody_is_nobody(self, auth: OneAuth) -> None:
        assert await self.ask(auth, {}) is None
        assert await self.ask(auth, {b"host": b"example.com", b"cookie": b"a=b", b"x-other": b"1"}) is None

    async def test_the_right_ones_say_who_it_is(self, auth: OneAuth) -> None:
        principals = [await self.ask(auth, raw(headers)) for headers in self.right(auth)]
        ids = {None if principal is None else principal.id for principal in principals}
        assert len(ids) == 2
        assert not ids & {None, "", ANONYMOUS}

    async def test_the_same_one_is_called_the_same(self, auth: OneAuth) -> None:
        first, again = [await self.ask(auth, raw(self.right(auth)[0])) for _ in range(2)]
        assert first is not None
        assert again is not None
        assert first.id == again.id

    async def test_wrong_ones_are_refused_without_a_word_too_much(self, auth: OneAuth) -> None:
        for headers in self.wrong(auth):
            with pytest.raises(UnauthenticatedError) as caught:
                await self.ask(auth, raw(headers))
            assert not any(secret in caught.value.message for secret in self.secrets)

    async def test_a_header_that_is_missing_or_noise_makes_nobody_else_of_anyone(self, auth: OneAuth) -> None:
        own = await self.ask(auth, raw(self.right(auth)[0]))
        assert own is not None
        for name in self.right(auth)[0]:
            for value in (None, *NOISE):
                headers = raw(self.right(auth)[0])
                del headers[name.encode()]
                if value is not None:
                    headers[name.encode()] = value
                try:
                    principal = await self.ask(auth, headers)
                except UnauthenticatedError:
                    continue
                assert principal is None or principal.id == own.id

    async def test_the_headers_of_two_make_no_third(self, auth: OneAuth) -> None:
        ids: set[str] = set()
        for headers in self.right(auth):
            principal = await self.ask(auth, raw(headers))
            ids |= {"" if principal is None else principal.id}
        first, second = self.right(auth)
        for name in first.keys() & second.keys():
            try:
                mixed = await self.ask(auth, raw({**first, name: second[name]}))
            except UnauthenticatedError:
                continue
            assert mixed is None or mixed.id in ids

    async def test_no_secret_is_shown(self, auth: OneAuth) -> None:
        assert self.secrets, "say in `secrets` which texts must never be shown"
        shown = repr(auth) + str(auth) + repr(vars(auth))
        assert not any(secret in shown for secret in self.secrets)


def raw(headers: Credentials) -> dict[bytes, bytes]:
    """Return headers in the form of an ASGI server."""
    return {name.lower().encode(): value.encode("latin-1") for name, value in headers.items()}
