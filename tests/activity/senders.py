"""A verifier in front of the fake's issuer, and the activities and tokens that tests forge."""

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from frontdesk.activity.clouds import CLOUDS, ServiceHosts
from frontdesk.activity.verify import ActivityVerifier, ProvedActivity
from frontdesk.auth.oidc import ProviderHttp
from frontdesk.clock import SystemClock
from frontdesk_testing.activity import APP_ID, FakeActivity, fake_activity
from frontdesk_testing.activity.tokens import sign_token

SERVICE_URL = "https://smba.trafficmanager.net/emea/"
ISSUER = CLOUDS["public"].issuer
ENTRA = CLOUDS["public"].entra_issuers
SKILL_CALLER = "99999999-8888-4777-8666-555555555555"


@dataclass
class Senders:
    """What a stranger, another bot or Bot Service sends."""

    fake: FakeActivity
    verifier: ActivityVerifier
    now: int = field(default_factory=lambda: int(SystemClock().now()))

    def claims(self, **other: Any) -> dict[str, Any]:
        own = {"iss": ISSUER, "aud": APP_ID, "serviceurl": SERVICE_URL, "nbf": self.now, "exp": self.now + 3600}
        return {name: value for name, value in {**own, **other}.items() if value is not None}

    def token(self, **other: Any) -> str:
        return sign_token(self.claims(**other))

    def entra_token(self, number: int = 1, **other: Any) -> str:
        """Return a token of Entra, as the emulator and skills have."""
        claims = self.claims(iss=ENTRA[number].issuer, serviceurl=None, ver="2.0", azp=APP_ID)
        return sign_token({**claims, **other})

    def activity(self, **other: Any) -> dict[str, Any]:
        given = {
            "type": "message",
            "id": "1",
            "channelId": "msteams",
            "serviceUrl": SERVICE_URL,
            "from": {"id": "29:ada", "name": "Ada", "aadObjectId": "0a0a0a0a-1b1b-4c2c-8d3d-4e4e4e4e4e4e"},
            "recipient": {"id": f"28:{APP_ID}"},
            "conversation": {"id": "a:1", "conversationType": "personal", "tenantId": self.fake.tenant},
            "text": "hello",
        }
        return {name: value for name, value in {**given, **other}.items() if value is not None}

    async def prove(self, token: str | bytes | None, **other: Any) -> ProvedActivity:
        """Verify an activity as the webhook does."""
        text = token.encode() if isinstance(token, str) else token
        headers = {} if text is None else {b"authorization": b"Bearer " + text}
        proof = await self.verifier.verify(headers)
        return self.verifier.read(msgspec.json.encode(self.activity(**other)), proof)


@asynccontextmanager
async def senders(*, more_hosts: tuple[str, ...] = (), **settings: Any) -> AsyncIterator[Senders]:
    """Serve the issuer on this machine. The hosts of service URLs are those of the public cloud."""
    async with fake_activity() as fake:
        cloud, loopback = CLOUDS["public"], CLOUDS["public"].on_loopback(fake.url)
        hosts = ServiceHosts(cloud, more=more_hosts, emulator=settings.get("accept_emulator", False))
        verifier = ActivityVerifier(APP_ID, loopback, hosts, http=ProviderHttp(), clock=SystemClock(), **settings)
        yield Senders(fake, verifier)


def unsigned(claims: dict[str, Any], alg: str = "none") -> str:
    """Return a token without a signature."""
    return f"{_part({'alg': alg, 'typ': 'JWT', 'kid': 'the-endorsed-key'})}.{_part(claims)}."


def symmetric(claims: dict[str, Any], secret: bytes) -> str:
    """Return a token whose signature anybody can make who knows the public key."""
    signed = f"{_part({'alg': 'HS256', 'typ': 'JWT', 'kid': 'the-endorsed-key'})}.{_part(claims)}"
    digest = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def altered(token: str, **claims: Any) -> str:
    """Return a token with other claims and its old signature."""
    head, body, signature = token.split(".")
    decoded = msgspec.json.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return f"{head}.{_part({**decoded, **claims})}.{signature}"


def _part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).rstrip(b"=").decode()
