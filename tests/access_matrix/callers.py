"""Who could come to a door: with which credentials, to a house with which rules, and what each kind of route says."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.access_matrix.issuer import STRANGER, Issuers

Headers = dict[str, str]
Credentials = Callable[["Keys", str, str, bytes], Headers]

OWNER_KEY, OTHER_KEY = "the-key-of-the-owner", "the-key-of-another-one"


class Keys(NamedTuple):
    """What credentials are made of."""

    issuers: Issuers
    hmac: Any


class Said(NamedTuple):
    """What each kind of route answers."""

    make: int
    thing: int
    info: int
    unknown: int = 404
    open: int = 200

    @property
    def task(self) -> int:
        """What a caller of another agent is answered; one who has to link gets a task that waits for it."""
        return self.make


class Caller(NamedTuple):
    """One kind of caller."""

    credentials: Credentials
    said: Said
    code: str | None = None
    """What the refusals are called."""
    house: str = "open"
    """Which rules the house has: `open`, `listed` or `linked`."""
    again: bool = False
    """Whether the same bytes were here before."""


OUT = Said(401, 401, 401, unknown=401)
SHUT = Said(403, 403, 403)
OTHER = Said(200, 404, 200)


def _bearer(token: str) -> Headers:
    return {"authorization": f"Bearer {token}"}


def owner(keys: Keys, *_: Any) -> Headers:
    """Whose everything is that the matrix is about."""
    return _bearer(keys.issuers.token("north"))


CALLERS: dict[str, Caller] = {
    "anonymous": Caller(lambda *_: {}, OUT, "unauthenticated"),
    "other principal": Caller(lambda *_: {"x-api-key": OTHER_KEY}, OTHER),
    "other tenant": Caller(lambda keys, *_: _bearer(keys.issuers.token("south")), OTHER),
    "unknown tenant": Caller(
        lambda keys, *_: _bearer(keys.issuers.token("north", iss=keys.issuers.url("west"))), OUT, "invalid_token"
    ),
    "unlinked": Caller(owner, SHUT, "link_required", house="linked"),
    "denied": Caller(owner, SHUT, "denied", house="listed"),
    "expired token": Caller(
        lambda keys, *_: _bearer(keys.issuers.token("north", iat=1, exp=1_000)), OUT, "invalid_token"
    ),
    "token of tomorrow": Caller(
        lambda keys, *_: _bearer(keys.issuers.token("north", nbf=9_999_999_999, exp=9_999_999_999)),
        OUT,
        "invalid_token",
    ),
    "wrong audience": Caller(
        lambda keys, *_: _bearer(keys.issuers.token("north", aud="api://another")), OUT, "invalid_token"
    ),
    "no audience": Caller(
        lambda keys, *_: _bearer(keys.issuers.token("north", without=("aud",))), OUT, "invalid_token"
    ),
    "no subject": Caller(lambda keys, *_: _bearer(keys.issuers.token("north", without=("sub",))), OUT, "invalid_token"),
    "alg=none": Caller(lambda keys, *_: _bearer(keys.issuers.make_unsigned("north")), OUT, "invalid_token"),
    "signed with the public key": Caller(
        lambda keys, *_: _bearer(keys.issuers.sign_with_the_public_key("north")), OUT, "invalid_token"
    ),
    "signed by a stranger": Caller(
        lambda keys, *_: _bearer(keys.issuers.token("north", key=STRANGER)), OUT, "invalid_token"
    ),
    "signed by the other tenant": Caller(
        lambda keys, *_: _bearer(keys.issuers.token("south", iss=keys.issuers.url("north"))), OUT, "invalid_token"
    ),
    "headers of the platform": Caller(
        lambda *_: {"x-agent-user-id": "owner", "x-agent-user-isolation-key": "owner"}, OUT, "unauthenticated"
    ),
    "wrong key": Caller(lambda *_: {"x-api-key": "a-key-that-nobody-has"}, OUT, "unauthenticated"),
    "replayed": Caller(
        lambda keys, method, target, body: keys.hmac.sign("machine", method, target, body),
        OUT,
        "signature_replayed",
        again=True,
    ),
    "signed for another path": Caller(
        lambda keys, method, target, body: keys.hmac.sign("machine", method, f"{target}x", body),
        OUT,
        "unauthenticated",
    ),
    "page of another origin": Caller(
        lambda keys, *_: {**owner(keys), "origin": "https://evil.example"},
        Said(403, 403, 403, unknown=403),
        "origin_refused",
    ),
}
