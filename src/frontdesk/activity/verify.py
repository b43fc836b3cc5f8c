"""Verifies that an activity comes from Bot Service, by its token.

Stricter than the SDKs of Microsoft: the token must be for this bot, name the activity's service URL, and be signed by a
key that is endorsed for the activity's channel. The service URL must be one of Bot Service's servers, because our own
token is sent there.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from frontdesk.activity.clouds import Cloud, ServiceHosts
from frontdesk.activity.schema import TEAMS, Activity, decode_activity
from frontdesk.asgi.messages import Headers
from frontdesk.auth.bearer import Rules, Unproved, build_refusal, prove, read
from frontdesk.auth.oidc import Issuer, ProviderHttp
from frontdesk.auth.platform_auth import PlatformAuth
from frontdesk.chat.messages import Proof
from frontdesk.clock import Clock
from frontdesk.errors import ForbiddenError, InvalidRequestError, PushRefusedError, UnauthenticatedError
from frontdesk.errors.base import install_hint

LEEWAY_SECONDS: Final = 300
RETRY_SECONDS: Final = 1.0
"""The seconds between two attempts to fetch the signing keys. What comes meanwhile is a 503."""
UNKNOWN_KEY_SECONDS: Final = 60.0
"""The seconds between two fetches for tokens that name an unknown key."""
MAX_TOKENS: Final = 1024
"""The number of verified tokens that are remembered. Bot Service sends one token with many activities."""
EMULATOR = "emulator"
_ALGORITHMS = ("RS256",)
_TYPES = frozenset({"jwt"})

Source = Literal["connector", "emulator", "skill", "platform"]


class TokenProof(Proof, frozen=True, kw_only=True):
    """A verified token, or a request of a trusted platform. Whether an activity matches it is checked later."""

    source: Source
    """Who has sent it: Bot Service, the emulator, another bot, or the platform that this host runs on."""
    endorsements: tuple[str, ...] = ()
    """The channels for which the signing key is endorsed."""
    caller_app: str = ""
    """The app id of the bot that has sent it as a skill call."""


@dataclass(frozen=True, slots=True)
class ProvedActivity:
    """An activity that matches its token."""

    activity: Activity
    source: Source
    caller_app: str = ""


@dataclass(frozen=True, slots=True)
class _Known:
    proof: TokenProof
    until: float
    fresh_until: float


def require_joserfc() -> None:
    """Raise an error with install instructions if the library for tokens is missing."""
    try:
        import joserfc  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise ImportError(f"channels of Bot Service need joserfc: {install_hint('activity')}") from error


class ActivityVerifier:
    """Verifies the activities that are sent to one bot."""

    def __init__(
        self,
        app_id: str,
        cloud: Cloud,
        hosts: ServiceHosts,
        *,
        http: ProviderHttp,
        clock: Clock,
        tenants: Collection[str] | None = None,
        accept_emulator: bool = False,
        skill_callers: Collection[str] = (),
        platform: PlatformAuth | None = None,
    ) -> None:
        """Accept tokens of Bot Service, or with `platform` requests whose tokens the platform has verified."""
        self._app_id, self._cloud, self._hosts = app_id, cloud, hosts
        self._clock, self._platform = clock, platform
        self._tenants = None if tenants is None else frozenset(tenant.lower() for tenant in tenants)
        self._skill_callers = frozenset(caller.lower() for caller in skill_callers)
        self._accept_emulator = accept_emulator
        self._connector = Issuer(
            cloud.issuer, http=http, clock=clock, url=cloud.metadata_url, retry_seconds=RETRY_SECONDS
        )
        self._entra = {
            each.issuer: Issuer(each.issuer, http=http, clock=clock, url=each.url, retry_seconds=RETRY_SECONDS)
            for each in (cloud.entra_issuers if accept_emulator or skill_callers else ())
        }
        self._rules = Rules((app_id,), _ALGORITHMS, LEEWAY_SECONDS, _TYPES)
        self._known: dict[bytes, _Known] = {}
        self._reloaded_at = float("-inf")

    async def verify(self, headers: Headers) -> TokenProof:
        """Verify the token of a request, before its body is read. Raise `UnauthenticatedError` without a valid one."""
        if self._platform is None:
            return await self._prove_token(headers)
        if not self._platform.trusts({"type": "http"}, headers):
            raise UnauthenticatedError("The activity does not come from the platform.")
        return TokenProof(source="platform")

    def read(self, body: bytes, proof: Proof | None) -> ProvedActivity:
        """Parse an activity. Raise `UnauthenticatedError` if it is none of those that its token is for."""
        if not isinstance(proof, TokenProof):
            raise UnauthenticatedError("The activity was not verified.")
        activity = decode_activity(body)
        self._check(activity, proof)
        return ProvedActivity(activity, proof.source, proof.caller_app)

    async def check_online(self) -> None:
        """Fetch the signing keys. Raise `UnavailableError` if that fails."""
        await self._connector.load()

    async def _prove_token(self, headers: Headers) -> TokenProof:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        token = token.strip()
        if scheme.lower() != b"bearer" or not token:
            raise UnauthenticatedError("The activity has no bearer token.")
        digest = hashlib.sha256(token).digest()
        known = self._known.pop(digest, None)
        if known is None or self._clock.now() >= known.until or self._clock.steady() >= known.fresh_until:
            known = await self._prove(read(token))
        # To the end of the order: the token that was not used for the longest time makes room first.
        self._known[digest] = known
        if len(self._known) > MAX_TOKENS:
            del self._known[next(iter(self._known))]
        return known.proof

    async def _prove(self, token: Unproved) -> _Known:
        is_connector = token.issuer == self._cloud.issuer
        issuer = self._connector if is_connector else self._entra.get(token.issuer)
        if issuer is None:
            raise build_refusal("its issuer is not accepted")
        if not token.header.kid:
            raise build_refusal("it names no signing key")
        await self._limit_reloads(issuer, token.header.kid, token.header.alg)
        claims = await prove(token, issuer, (issuer.issuer,), self._rules, self._clock.now())
        if claims.get("aud") != self._app_id:
            # A list of audiences is no token of Bot Service.
            raise build_refusal("its audience is not this bot")
        until, fresh_until = float(claims["exp"]) + LEEWAY_SECONDS, issuer.fresh_until
        if not is_connector:
            source, caller = self._entra_source(claims)
            return _Known(TokenProof(source=source, claims=claims, caller_app=caller), until, fresh_until)
        key = await issuer.key(token.header.kid, token.header.alg)
        endorsements = () if key is None else key.endorsements
        proof = TokenProof(source="connector", claims=claims, endorsements=endorsements)
        return _Known(proof, until, fresh_until)

    async def _limit_reloads(self, issuer: Issuer, kid: str, alg: str) -> None:
        """Reject tokens of unknown keys, if the keys were fetched for another one a moment ago."""
        if alg not in _ALGORITHMS or (await issuer.load()).key(kid, alg) is not None:
            return
        now = self._clock.steady()
        if now - self._reloaded_at < UNKNOWN_KEY_SECONDS:
            raise build_refusal("its signing key is unknown")
        self._reloaded_at = now

    def _entra_source(self, claims: Mapping[str, Any]) -> tuple[Source, str]:
        """Return whether a token is that of the emulator or of a bot that calls this one as a skill."""
        name = {"1.0": "appid", "2.0": "azp"}.get(str(claims.get("ver", "1.0")))
        caller = claims.get(name) if name is not None else None
        if not isinstance(caller, str) or not caller:
            raise build_refusal("it names no app")
        if caller.lower() == self._app_id.lower():
            # The emulator has the secret of the bot.
            if not self._accept_emulator:
                raise build_refusal("tokens of the emulator are not accepted")
            return "emulator", ""
        if caller.lower() not in self._skill_callers:
            raise build_refusal("its app may not call this bot as a skill")
        return "skill", caller

    def _check(self, activity: Activity, proof: TokenProof) -> None:
        """Raise unless an activity is one of those that its token is for."""
        url, channel = activity.service_url or "", activity.channel_id or ""
        if not url or not channel:
            raise InvalidRequestError("The activity has no serviceUrl or no channelId.")
        if proof.source == "connector":
            if channel not in proof.endorsements:
                raise build_refusal("its signing key is not endorsed for the channel of the activity")
            named = proof.claims.get("serviceurl")
            if not isinstance(named, str) or named.rstrip("/") != url.rstrip("/"):
                raise build_refusal("it is for another service URL")
        if proof.source == "emulator" and channel != EMULATOR:
            # Otherwise it could write in the name of people of other platforms.
            raise build_refusal("the emulator may not send activities of another channel")
        try:
            self._hosts.check(url, emulator=proof.source == "emulator")
        except PushRefusedError as error:
            raise UnauthenticatedError(
                "The service URL of the activity does not belong to Bot Service.", code=error.code
            ) from None
        self._check_tenant(activity)

    def _check_tenant(self, activity: Activity) -> None:
        tenant = activity.tenant_id
        if self._tenants is not None and tenant not in self._tenants:
            raise ForbiddenError("The tenant of the activity is not accepted.", code="tenant_refused")


def teams_claims(activity: Activity, source: Source) -> dict[str, str]:
    """Return the verified claims about the sender of an activity. Only Teams proves who a person is. Pure.

    They are those of a sign-in with Entra, so that the same person is recognized.
    """
    person, tenant = activity.sender, activity.tenant_id
    if source != "connector" or activity.channel_id != TEAMS or person is None or not tenant:
        return {}
    oid = (person.aad_object_id or "").lower()
    if not _is_guid(oid) or not _is_guid(tenant):
        return {}
    return {"iss": f"https://login.microsoftonline.com/{tenant}/v2.0", "tid": tenant, "oid": oid}


def _is_guid(text: str) -> bool:
    digits = text.replace("-", "")
    return len(text) == 36 and len(digits) == 32 and all(digit in "0123456789abcdef" for digit in digits)
