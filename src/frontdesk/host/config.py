"""Settings of the host. The only module that reads environment variables."""

import ipaddress
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from frontdesk.approvals.policy import ApprovalOptions
from frontdesk.delivery.plan import ACTIVE_WINDOW_SECONDS
from frontdesk.delivery.watchers import WatcherOptions
from frontdesk.errors import ChannelConfigurationError
from frontdesk.foundry.conventions import HOSTED, SESSION, FoundryAnswers
from frontdesk.interfaces.argument_types import type_finding
from frontdesk.interfaces.auth import AsksEnvironment
from frontdesk.models.request import OnInterrupt
from frontdesk.runs.limits import RunLimits
from frontdesk.secret import Secret
from frontdesk.sessions.memory import MAX_HISTORY_BYTES
from frontdesk.sessions.snapshot import MAX_BYTES

RuntimeMode = Literal["long_running", "ephemeral"]
SealKeys = str | Secret | Sequence[str | Secret]
"""One key, or several: the first seals, and all of them open."""
AdminSocketPlace = bool | str | Path | None
"""The operators' socket of a running host: at a path, in the directory of the store (`True`), or none (`False`).

`None` is the directory of the store if it has one to itself.
"""

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8000
FOUNDRY_PORT = 8088
_EPHEMERAL = (HOSTED, "AZURE_FUNCTIONS_ENVIRONMENT", "AWS_LAMBDA_FUNCTION_NAME")


@dataclass(frozen=True)
class Seconds:
    session_wait: float = 30.0
    cancel_grace: float = 5.0
    shutdown_grace: float = 10.0
    active_window: float = ACTIVE_WINDOW_SECONDS


@dataclass(frozen=True)
class HostConfig:
    """The host's settings. They validate themselves."""

    runtime_mode: RuntimeMode | None = None
    allow_in_process_runner: bool = False
    allow_anonymous: bool = False
    seconds: Seconds = Seconds()
    runs: RunLimits = field(default_factory=RunLimits)
    on_interrupt: OnInterrupt = "fail"
    max_session_bytes: int = MAX_BYTES
    max_history_bytes: int = MAX_HISTORY_BYTES
    approvals: ApprovalOptions = field(default_factory=ApprovalOptions)
    """The rules of who approves which tools."""
    admin_socket: AdminSocketPlace = None
    public_url: str | None = None
    """The URL of this host for others, without a slash at its end."""

    watchers: WatcherOptions = field(default_factory=WatcherOptions)
    """The bounds of watchers, and the URLs that they can have."""

    def findings(self) -> list[str]:
        wrong: list[str] = []
        if self.runtime_mode not in ("long_running", "ephemeral", None):
            wrong.append(f"runtime_mode: {self.runtime_mode!r} is not 'long_running', 'ephemeral' or None")
        seconds = {f"{name}_seconds": value for name, value in asdict(self.seconds).items()}
        counts = {**asdict(self.runs), "max_session_bytes": self.max_session_bytes}
        counts["max_history_bytes"] = self.max_history_bytes
        # The text "false" of an environment variable would let everybody in.
        flags = {"allow_anonymous": self.allow_anonymous, "allow_in_process_runner": self.allow_in_process_runner}
        if types := [
            *filter(None, (type_finding(name, value, float) for name, value in seconds.items())),
            *filter(None, (type_finding(name, count, int) for name, count in counts.items())),
            *filter(None, (type_finding(name, flag, bool) for name, flag in flags.items())),
        ]:
            return [*wrong, *types]
        wrong += [f"{name} must not be negative" for name, value in seconds.items() if value < 0]
        if not (self.admin_socket is None or isinstance(self.admin_socket, bool) or _is_path(self.admin_socket)):
            wrong.append("admin_socket must be a path, True, False or None")
        wrong += public_url_findings(self.public_url)
        watchers: Any = self.watchers
        if isinstance(watchers, WatcherOptions):
            wrong += watchers.findings()
        else:
            wrong.append(f"watchers: {type(watchers).__name__} is not WatcherOptions")
        if self.on_interrupt not in get_args(OnInterrupt):
            wrong.append(f"on_interrupt: {self.on_interrupt!r} is not 'fail', 'restart' or 'resume'")
        return wrong + [f"{name} must be at least 1" for name, count in counts.items() if count < 1]


def build_config(
    mode: tuple[Any, bool, bool],
    seconds: Seconds,
    runs: RunLimits,
    on_interrupt: OnInterrupt,
    sizes: tuple[int, int],
    approvals: ApprovalOptions | None,
    admin_socket: AdminSocketPlace,
    public_url: Any = None,
    watchers: WatcherOptions | None = None,
) -> HostConfig:
    """Build the configuration.

    `mode` is the runtime mode with the limitations that are accepted in it. `sizes` are the limits of a state and of a
    history.
    """
    rules = ApprovalOptions() if approvals is None else approvals
    url = public_url.rstrip("/") if isinstance(public_url, str) else public_url
    return HostConfig(
        *mode, seconds, runs, on_interrupt, *sizes, rules, admin_socket, url, watchers or WatcherOptions()
    )


def _is_visible(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def public_url_findings(url: Any) -> list[str]:
    """Return the findings for the public URL of a host, one line each."""
    if url is None:
        return []
    if not isinstance(url, str):
        return [f"public_url: {type(url).__name__} is not a URL such as 'https://bots.example.com'"]
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_right = False
        parts = urlsplit("")
    # Control characters and spaces would be left out by some readers of a URL, and not by others.
    if not is_right or not _is_visible(url):
        return ["public_url must be an absolute URL with http or https, such as 'https://bots.example.com'"]
    if parts.username is not None or parts.query or parts.fragment or "?" in url or "#" in url:
        return ["public_url must not have a user, a query or a fragment"]
    return []


def _is_path(place: object) -> bool:
    return isinstance(place, (str, Path)) and str(place) != "" and "\0" not in str(place)


def detect_runtime_mode(
    chosen: RuntimeMode | None, environment: Mapping[str, str] = os.environ
) -> tuple[RuntimeMode, str]:
    """Return the runtime mode of this process and the reason for it."""
    if chosen is not None:
        return chosen, "as configured"
    for name in _EPHEMERAL:
        if environment.get(name):
            return "ephemeral", f"{name} is set"
    return "long_running", "no sign of anything else"


def bind_address(host: str | None, port: int | None, environment: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Return the bind address: as given, otherwise loopback, or in Foundry the address that it expects."""
    if not is_in_foundry(environment):
        return LOOPBACK if host is None else host, DEFAULT_PORT if port is None else port
    given = environment.get("PORT") or str(FOUNDRY_PORT)
    if port is None and not (given.isascii() and given.isdigit() and int(given[:6]) < 65536):
        raise ChannelConfigurationError(f"PORT: {given!r} is not a port number")
    # The platform reaches it by the network of its sandbox.
    return "0.0.0.0" if host is None else host, int(given[:6]) if port is None else port  # noqa: S104


def foundry_answers(environment: Mapping[str, str] = os.environ) -> FoundryAnswers | None:
    """Return the writer of Foundry response headers, or None outside of Foundry."""
    return FoundryAnswers(environment.get(SESSION)) if is_in_foundry(environment) else None


def is_in_foundry(environment: Mapping[str, str] = os.environ) -> bool:
    return bool(environment.get(HOSTED))


def is_public(address: str) -> bool:
    """Return True if other machines can reach a server that binds to an address."""
    if address == "localhost":
        return False
    try:
        return not ipaddress.ip_address(address).is_loopback
    except ValueError:
        return True


def variable(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the value of an operator-defined environment variable, or None if it is not set."""
    return environment.get(name) or None


def seal_keys(given: SealKeys | None, environment: Mapping[str, str] = os.environ) -> tuple[Secret, ...]:
    """Return the given keys, or else those of the environment, separated by commas or spaces."""
    if given is None:
        given = environment.get("FRONTDESK_SEAL_KEY", "").replace(",", " ").split()
    keys = [given] if isinstance(given, (str, Secret)) else given
    return tuple(key if isinstance(key, Secret) else Secret(key) for key in keys)


def show_environment(auths: Iterable[object]) -> None:
    """Give access to the environment to credentials that depend on it."""
    for auth in auths:
        if isinstance(auth, AsksEnvironment):
            auth.look(variable)


def openai_settings(environment: Mapping[str, str] = os.environ) -> tuple[str | None, str | None]:
    """Return the API key for the demo's real model and the chosen model name, None where not set."""
    model = environment.get("OPENAI_CHAT_MODEL") or environment.get("OPENAI_MODEL")
    return environment.get("OPENAI_API_KEY") or None, model or None
