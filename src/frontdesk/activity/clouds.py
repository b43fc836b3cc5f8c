"""The clouds of Azure Bot Service, and the servers that may receive the token of a bot."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import urlsplit

from frontdesk.errors import PushRefusedError
from frontdesk.outbound.network import is_address, plain_host
from frontdesk.outbound.platform_hosts import PlatformHosts

CloudName = Literal["public", "usgov", "china"]
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
EMULATOR_SERVERS: Final = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class EntraIssuer:
    """An issuer of tokens of the emulator and of skills, with the URL of its discovery document."""

    issuer: str
    url: str


@dataclass(frozen=True, slots=True)
class Cloud:
    """The addresses of one cloud."""

    issuer: str
    """The issuer of the tokens that Bot Service sends."""
    metadata_url: str
    login_url: str
    """The server that issues our own tokens."""
    token_tenant: str
    """The tenant of the tokens of a bot that has no tenant of its own."""
    audience: str
    """The resource that our tokens are for."""
    service_hosts: tuple[str, ...]
    """The hosts that may receive our token, each with the hosts below it."""
    direct_url: str
    """The service URL at which the direct chat with a person is created; empty if it is unknown."""
    entra_issuers: tuple[EntraIssuer, ...] = ()

    @property
    def scope(self) -> str:
        return f"{self.audience}/.default"

    def token_url(self, tenant: str) -> str:
        return f"{self.login_url}/{tenant}/oauth2/v2.0/token"

    def on_loopback(self, url: str) -> "Cloud":
        """Return the cloud with all of its servers at one loopback URL, for tests."""
        base = url.rstrip("/")
        return replace(
            self,
            metadata_url=f"{base}/v1/.well-known/openidconfiguration",
            login_url=base,
            service_hosts=(),
            direct_url=f"{base}/teams/",
            entra_issuers=tuple(
                replace(each, url=f"{base}/{number}/.well-known/openid-configuration")
                for number, each in enumerate(self.entra_issuers)
            ),
        )


def _issuers(login_url: str, tenants: Sequence[str]) -> tuple[EntraIssuer, ...]:
    """Return the issuers of tenants, for both versions of tokens."""
    document = ".well-known/openid-configuration"
    return tuple(
        issuer
        for tenant in tenants
        for issuer in (
            EntraIssuer(f"https://sts.windows.net/{tenant}/", f"{login_url}/{tenant}/{document}"),
            EntraIssuer(f"{login_url}/{tenant}/v2.0", f"{login_url}/{tenant}/v2.0/{document}"),
        )
    )


_PUBLIC_LOGIN = "https://login.microsoftonline.com"
_GOV_LOGIN = "https://login.microsoftonline.us"

CLOUDS: Final[Mapping[str, Cloud]] = {
    "public": Cloud(
        issuer="https://api.botframework.com",
        metadata_url="https://login.botframework.com/v1/.well-known/openidconfiguration",
        login_url=_PUBLIC_LOGIN,
        token_tenant="botframework.com",  # noqa: S106 - the name of a tenant
        audience="https://api.botframework.com",
        service_hosts=("smba.trafficmanager.net", "botframework.com", "smba.infra.gcc.teams.microsoft.com"),
        direct_url="https://smba.trafficmanager.net/teams/",
        entra_issuers=_issuers(
            _PUBLIC_LOGIN, ("d6d49420-f39b-4df7-a1dc-d59a935871db", "f8cdef31-a31e-4b4a-93e4-5f571e91255a")
        ),
    ),
    "usgov": Cloud(
        issuer="https://api.botframework.us",
        metadata_url="https://login.botframework.azure.us/v1/.well-known/openidconfiguration",
        login_url=_GOV_LOGIN,
        token_tenant="MicrosoftServices.onmicrosoft.us",  # noqa: S106 - the name of a tenant
        audience="https://api.botframework.us",
        service_hosts=("smba.infra.gov.teams.microsoft.us", "smba.infra.dod.teams.microsoft.us"),
        direct_url="https://smba.infra.gov.teams.microsoft.us/teams/",
        entra_issuers=_issuers(_GOV_LOGIN, ("cab8a31a-1906-4287-a0d8-4eef66b95f6e",)),
    ),
    "china": Cloud(
        issuer="https://api.botframework.azure.cn",
        metadata_url="https://login.botframework.azure.cn/v1/.well-known/openidconfiguration",
        login_url="https://login.partner.microsoftonline.cn",
        token_tenant="microsoftservices.partner.onmschina.cn",  # noqa: S106 - the name of a tenant
        audience="https://api.botframework.azure.cn",
        # The hosts of this cloud are not documented; the operator lists them.
        service_hosts=(),
        direct_url="",
    ),
}


def loopback_finding(url: str) -> str | None:
    """Return the configuration error of the URL of a connector on this machine, or None."""
    try:
        parts = urlsplit(url)
        local = parts.hostname in LOOPBACK and parts.port is not None
    except ValueError:
        local, parts = False, urlsplit("")
    if local and parts.scheme == "http" and parts.path in ("", "/") and not parts.username and not parts.query:
        return None
    return "connector_url is for tests: it must be http to a port of this machine, such as http://127.0.0.1:3980"


def service_host_findings(hosts: Sequence[str]) -> list[str]:
    """Return the configuration errors of hosts that an operator lists, one line each."""
    return [
        f"service_hosts: {host!r} must be a host name, such as smba.example.com, or *.example.com for those below it"
        for host in hosts
        if not _is_host(host.removeprefix("*."))
    ]


def _is_host(host: str) -> bool:
    try:
        plain = plain_host(host)
    except ValueError:
        return False
    return plain == host and "." in host and not is_address(host) and not any(mark in host for mark in ":/@*?# ")


class ServiceHosts:
    """Decides whether our token may be sent to a service URL. Its receiver can act as the bot."""

    def __init__(
        self,
        cloud: Cloud,
        *,
        more: Collection[str] = (),
        loopback: str | None = None,
        emulator: bool = False,
    ) -> None:
        """Allow the hosts of a cloud and those of the operator. With `loopback`, only that server of a test."""
        self.loopback = loopback
        listed = [server for host in cloud.service_hosts for server in (f"https://{host}", f"https://*.{host}")]
        self.servers = tuple(dict.fromkeys([*listed, *(f"https://{host}" for host in more)]))
        if loopback is not None:
            self.servers = (loopback.rstrip("/"),)
        self._hosts = PlatformHosts(self.servers, allow_private=loopback is not None) if self.servers else None
        self._emulator = emulator

    def check(self, url: str, *, emulator: bool = False) -> str:
        """Return the service URL with a slash at its end, or raise `PushRefusedError` for one of another server.

        `emulator` marks the URL of an activity of the emulator, which is on this machine.
        """
        refused = PushRefusedError("The service URL does not belong to Bot Service.", code="host_refused")
        if "?" in url or "#" in url or "%" in url or "\\" in url or ".." in url:
            raise refused
        if emulator and self._emulator and is_emulator_url(url):
            return _with_slash(url)
        if self._hosts is None:
            raise refused
        origin = self._hosts.get_origin(url)
        if self.loopback is None and (not origin.secure or is_address(origin.host)):
            raise refused
        return _with_slash(url)


def is_emulator_url(url: str) -> bool:
    """Return True if a URL is one of this machine, as those of the emulator are."""
    try:
        parts = urlsplit(url)
        return (
            parts.scheme == "http"
            and parts.hostname in EMULATOR_SERVERS
            and parts.port is not None
            and parts.username is None
        )
    except ValueError:
        return False


def _with_slash(url: str) -> str:
    return url if url.endswith("/") else f"{url}/"
