"""The host's settings. The only file that reads the environment."""

import ipaddress
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from frontdesk.abc.auth import AsksEnvironment
from frontdesk.approvals.policy import ApprovalOptions
from frontdesk.data.request import OnInterrupt
from frontdesk.delivery.plan import ACTIVE_WINDOW
from frontdesk.errors import ChannelConfigurationError
from frontdesk.kit.auth.secrets import Secret
from frontdesk.kit.foundry.answers import FoundryAnswers
from frontdesk.kit.foundry.settings import HOSTED, SESSION
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


class Mode(NamedTuple):
    """The first settings of a host: how long its process lives, and what it allows all the same."""

    runtime_mode: RuntimeMode | None
    allow_in_process_runner: bool
    allow_anonymous: bool


@dataclass(frozen=True)
class RunLimits:
    """The numbers of background runs that are allowed: at work, of one caller, and waiting."""

    max_background_runs: int = 100
    max_background_runs_per_caller: int = 20
    max_waiting_background_runs: int = 1_000


@dataclass(frozen=True)
class Seconds:
    """The host's timeouts and windows."""

    session_wait: float = 30.0
    cancel_grace: float = 5.0
    shutdown_grace: float = 10.0
    active_window: float = ACTIVE_WINDOW


@dataclass(frozen=True)
class HostConfig:
    """The host's settings; they check themselves."""

    runtime_mode: RuntimeMode | None = None
    allow_in_process_runner: bool = False
    allow_anonymous: bool = False
    seconds: Seconds = Seconds()
    runs: RunLimits = RunLimits()
    on_interrupt: OnInterrupt = "fail"
    max_session_bytes: int = MAX_BYTES
    approvals: ApprovalOptions | None = None
    """The rules of who approves which tools; without them the requester does, for as long as the session lasts."""
    admin_socket: AdminSocketPlace = None

    def findings(self) -> list[str]:
        """List what is wrong, a line each."""
        wrong: list[str] = []
        if self.runtime_mode not in ("long_running", "ephemeral", None):
            wrong.append(f"runtime_mode: {self.runtime_mode!r} is not 'long_running', 'ephemeral' or None")
        wrong += [f"{name}_seconds must not be negative" for name, value in asdict(self.seconds).items() if value < 0]
        if not (self.admin_socket is None or isinstance(self.admin_socket, bool) or _is_path(self.admin_socket)):
            wrong.append("admin_socket must be a path, True, False or None")
        if self.on_interrupt not in get_args(OnInterrupt):
            wrong.append(f"on_interrupt: {self.on_interrupt!r} is not 'fail', 'restart' or 'resume'")
        counts = {**asdict(self.runs), "max_session_bytes": self.max_session_bytes}
        return wrong + [f"{name} must be at least 1" for name, count in counts.items() if count < 1]


def _is_path(place: object) -> bool:
    return isinstance(place, (str, Path)) and str(place) != "" and "\0" not in str(place)


def detect_runtime_mode(
    chosen: RuntimeMode | None, environment: Mapping[str, str] = os.environ
) -> tuple[RuntimeMode, str]:
    """Return how long this process lives, and the reason for that answer."""
    if chosen is not None:
        return chosen, "as configured"
    for name in _EPHEMERAL:
        if environment.get(name):
            return "ephemeral", f"{name} is set"
    return "long_running", "no sign of anything else"


def bind_address(host: str | None, port: int | None, environment: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Return the address to bind to: as given, and otherwise for this machine only, or in Foundry what it expects."""
    if not is_in_foundry(environment):
        return LOOPBACK if host is None else host, DEFAULT_PORT if port is None else port
    given = environment.get("PORT") or str(FOUNDRY_PORT)
    if port is None and not (given.isascii() and given.isdigit() and int(given[:6]) < 65536):
        raise ChannelConfigurationError(f"PORT: {given!r} is not the number of a port")
    # The platform reaches it by the network of its sandbox.
    return "0.0.0.0" if host is None else host, int(given[:6]) if port is None else port  # noqa: S104


def foundry_answers(environment: Mapping[str, str] = os.environ) -> FoundryAnswers | None:
    """Return what adds the headers of Foundry to answers; `None` elsewhere."""
    return FoundryAnswers(environment.get(SESSION)) if is_in_foundry(environment) else None


def is_in_foundry(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether Foundry hosts this process."""
    return bool(environment.get(HOSTED))


def is_public(address: str) -> bool:
    """Tell whether other machines can reach a server that binds to an address."""
    if address == "localhost":
        return False
    try:
        return not ipaddress.ip_address(address).is_loopback
    except ValueError:
        return True


def variable(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the value of a variable that the operator named; `None` if it is not set."""
    return environment.get(name) or None


def seal_keys(given: SealKeys | None, environment: Mapping[str, str] = os.environ) -> tuple[Secret, ...]:
    """Return the keys that were given, or else those of the environment, which are separated by commas or spaces."""
    if given is None:
        given = environment.get("FRONTDESK_SEAL_KEY", "").replace(",", " ").split()
    keys = [given] if isinstance(given, (str, Secret)) else given
    return tuple(key if isinstance(key, Secret) else Secret(key) for key in keys)


def show_environment(auths: Iterable[object]) -> None:
    """Let credentials that depend on the environment read it."""
    for auth in auths:
        if isinstance(auth, AsksEnvironment):
            auth.look(variable)


def openai_settings(environment: Mapping[str, str] = os.environ) -> tuple[str | None, str | None]:
    """Return the key for the demo's real model, if there is one, and the name of that model, if it is chosen."""
    model = environment.get("OPENAI_CHAT_MODEL") or environment.get("OPENAI_MODEL")
    return environment.get("OPENAI_API_KEY") or None, model or None
