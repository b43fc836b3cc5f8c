"""Callers that a hosting platform has authenticated, identified by request headers.

Any client can send such a header. So the headers count only for requests that are known to come from the platform, as
configured by the operator. In all other requests they are ignored.
"""

import hmac
import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

from starlette.types import Scope

from frontdesk.asgi.messages import Headers
from frontdesk.errors import UnauthenticatedError
from frontdesk.foundry.conventions import HOSTED
from frontdesk.interfaces.auth import AsksEnvironment, Principal, ShowsSchemes
from frontdesk.models.identity import ANONYMOUS, ISOLATION_HEADER_CHAT, ISOLATION_HEADER_USER, IsolationKeys
from frontdesk.secret import Secret, reveal

MIN_SECRET_LENGTH: Final = 16
_MAX_VALUE_LENGTH = 512
_DESCRIBED = "Set by the platform that this host runs on; from anyone else it has no effect."
_OLDER = (
    "This agent needs protocol 2.0 of the platform, and the request is of 1.0. Declare version 2.0.0 of the protocol "
    'in agent.yaml, or have the host say PlatformAuth(protocol="1.0").'
)
_TRUSTED = "TrustedEnvironment(...), TrustedPeers(...), TrustedSecret(...) or 'anyone_who_can_connect'"
_PLAIN = re.compile(rb"[\x21-\x7e]+")
_HEADER = re.compile(r"[a-z0-9-]{1,64}")
_USER = (b"x-agent-user-id", ISOLATION_HEADER_USER.encode())
"""The headers of the newer protocol and of the older one; a platform that sends both means the same person by both."""
_CHAT = ISOLATION_HEADER_CHAT.encode()
_CALL = b"x-agent-foundry-call-id"
_ALL = frozenset((*_USER, _CHAT, _CALL))


class TrustedEnvironment:
    """Trusts every connection, if an environment variable shows that the process runs on the platform."""

    def __init__(self, variable: str = HOSTED) -> None:
        if not variable:
            raise ValueError("TrustedEnvironment requires the name of a variable")
        self.variable = variable
        self._there = False

    def look(self, variable: Callable[[str], str | None]) -> None:
        self._there = bool(variable(self.variable))

    @property
    def is_there(self) -> bool:
        """Return True if the variable is set."""
        return self._there

    def trusts(self, scope: Scope, headers: Headers) -> bool:
        return self._there


class TrustedPeers:
    """Trusts connections from some networks: `TrustedPeers("10.1.0.0/16", "127.0.0.1")`."""

    def __init__(self, *networks: str) -> None:
        try:
            self._networks = [ipaddress.ip_network(network) for network in networks]
        except ValueError as error:
            raise ValueError(f"TrustedPeers: {error}") from None
        if not networks or any(network.prefixlen == 0 for network in self._networks):
            raise ValueError(
                "TrustedPeers: list specific networks, or use trusted='anyone_who_can_connect' to trust all"
            )

    def trusts(self, scope: Scope, headers: Headers) -> bool:
        client = scope.get("client")
        try:
            peer = ipaddress.ip_address(client[0]) if client else None
        except ValueError:
            peer = None
        if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped is not None:
            peer = peer.ipv4_mapped
        return peer is not None and any(peer in network for network in self._networks)


class TrustedSecret:
    """Trusts requests that bring a secret of the platform's in a header."""

    def __init__(self, secret: str | Secret, *, header: str = "x-platform-secret") -> None:
        if len(reveal(secret)) < MIN_SECRET_LENGTH:
            raise ValueError(f"TrustedSecret: the secret is shorter than {MIN_SECRET_LENGTH} characters")
        if not _HEADER.fullmatch(header):
            raise ValueError("TrustedSecret: the header must be a lower-case name")
        self._secret = Secret(secret)
        self._header = header.encode()

    def trusts(self, scope: Scope, headers: Headers) -> bool:
        """Return True if the request has the secret. A wrong secret is an error, a missing one is not."""
        given = headers.get(self._header)
        if given is None:
            return False
        if not hmac.compare_digest(given, self._secret.reveal().encode()):
            raise UnauthenticatedError("The platform secret is not valid.")
        return True


class _Anyone:
    def trusts(self, scope: Scope, headers: Headers) -> bool:
        return True


Protocol = Literal["1.0", "2.0"]
UserHeader = Literal["x-agent-user-id", "x-agent-user-isolation-key"]
Trusted = TrustedEnvironment | TrustedPeers | TrustedSecret | Literal["anyone_who_can_connect"]


class PlatformAuth(AsksEnvironment, ShowsSchemes):
    """The user named in the headers of a trusted platform, such as Foundry, with its isolation keys.

    `trusted` defines how requests of the platform are recognized. With `"anyone_who_can_connect"` headers are always
    trusted: only for a host that only the platform can reach. A request whose two headers name different users is
    rejected, unless `user_header` selects one. `protocol` defines the required headers. In Foundry the default is 2.0.
    """

    name = "platform"
    gives_claims = False
    security_schemes: Mapping[str, Mapping[str, str]] = {
        "platform": {"type": "apiKey", "in": "header", "name": ISOLATION_HEADER_USER, "description": _DESCRIBED}
    }

    def __init__(
        self, *, trusted: Trusted, user_header: UserHeader | None = None, protocol: Protocol | None = None
    ) -> None:
        if protocol not in (None, "1.0", "2.0"):
            raise ValueError(f"PlatformAuth: protocol must be '1.0' or '2.0', got {protocol!r}")
        if user_header is not None and user_header.encode() not in _USER:
            raise ValueError(f"PlatformAuth: user_header is not a supported header, got {user_header!r}")
        self._user = _USER if user_header is None else (user_header.encode(),)
        if not isinstance(trusted, (TrustedEnvironment, TrustedPeers, TrustedSecret)):
            if trusted != "anyone_who_can_connect":
                # Not shown: it may be the secret that belongs into TrustedSecret(...).
                raise ValueError(f"PlatformAuth: trusted= must be {_TRUSTED}")
            self._trusted: TrustedEnvironment | TrustedPeers | TrustedSecret | _Anyone = _Anyone()
        else:
            self._trusted = trusted
        in_foundry = isinstance(trusted, TrustedEnvironment) and trusted.variable == HOSTED
        is_older = protocol == "1.0" or user_header == ISOLATION_HEADER_USER
        self._needs_call = protocol == "2.0" or (protocol is None and in_foundry and not is_older)

    def look(self, variable: Callable[[str], str | None]) -> None:
        """Set the reader of environment variables. Called by the host when it is built."""
        if isinstance(self._trusted, TrustedEnvironment):
            self._trusted.look(variable)

    def trusts(self, scope: Scope, headers: Headers) -> bool:
        """Return True if a request comes from the platform, whatever user it names."""
        return self._trusted.trusts(scope, headers)

    @property
    def is_in_foundry(self) -> bool:
        """Return True if only the environment of Foundry is trusted, and this process runs in it."""
        trusted = self._trusted
        return isinstance(trusted, TrustedEnvironment) and trusted.variable == HOSTED and trusted.is_there

    async def authenticate_request(self, scope: Scope, headers: Headers) -> Principal | None:
        if not self._trusted.trusts(scope, headers):
            return None
        _require_single(scope)
        if self._needs_call and _CALL not in headers:
            raise UnauthenticatedError(_OLDER, code="platform_protocol")
        user = _user(headers, self._user)
        if user is None or user == ANONYMOUS:
            return None
        keys = IsolationKeys(user_key=user, chat_key=_value(headers, _CHAT), call_id=_value(headers, _CALL))
        return Principal(id=user, isolation=keys)

    async def recheck(self, scope: Scope, headers: Headers) -> Principal | None:
        return await self.authenticate_request(scope, headers)


def _require_single(scope: Scope) -> None:
    # A platform that adds its header to the one of a client means its own, and the host can't tell the two apart.
    sent = [name for name, _ in scope.get("headers", ()) if name in _ALL]
    if len(sent) != len(set(sent)):
        raise UnauthenticatedError("The request has a duplicate platform header.")


def _user(headers: Headers, names: tuple[bytes, ...]) -> str | None:
    """Return the user named in the headers. Reject headers that name different users."""
    users = {value for name in names if (value := _value(headers, name)) is not None}
    if len(users) > 1:
        # A client may have sent one of them, and the host can't tell which.
        raise UnauthenticatedError("The platform headers name different users.")
    return users.pop() if users else None


def _value(headers: Headers, name: bytes) -> str | None:
    value = headers.get(name)
    if not value:
        return None
    if len(value) > _MAX_VALUE_LENGTH or not _PLAIN.fullmatch(value):
        raise UnauthenticatedError(f"{name.decode()} must be 1 to {_MAX_VALUE_LENGTH} visible characters.")
    return value.decode("ascii")
