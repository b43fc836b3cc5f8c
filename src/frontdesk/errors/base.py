"""The base class of the errors, and the errors of the host."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class FrontdeskError(Exception):
    """The base class of all errors."""


class ChannelConfigurationError(FrontdeskError):
    """The host can't be built as configured. `findings` has one line for each mistake."""

    def __init__(self, findings: Sequence[str] | str) -> None:
        self.findings: tuple[str, ...] = (findings,) if isinstance(findings, str) else tuple(findings)
        super().__init__("\n".join(f"- {finding}" for finding in self.findings))


class HistoryStorageError(FrontdeskError):
    """The response store rejected or lost a request."""


class HistoryRefusedError(HistoryStorageError):
    """There is no such response for this person, or the service can't read its id."""


class ResponseTakenError(HistoryStorageError):
    """There is a response with this id already."""


class CodecError(FrontdeskError):
    """A value has no JSON form, or a stored record can't be read back."""


class BrokenRecordError(CodecError):
    """The bytes of a stored record are none that any version has written."""


class StateDirectoryError(FrontdeskError):
    """The state directory can't be used."""

    def __init__(
        self, path: Path, reason: str, advice: str = "make it a directory that this process can write"
    ) -> None:
        self.path = path
        super().__init__(f"The state directory {path} can't be used: {reason}; {advice}, or choose another.")


class StateDirectoryInUseError(StateDirectoryError):
    """Another host uses the state directory. `pid`, `machine` and `since` identify it, if known."""

    def __init__(
        self, path: Path, *, pid: int | None = None, machine: str | None = None, since: str | None = None
    ) -> None:
        self.pid, self.machine, self.since = pid, machine, since
        holder = "" if pid is None else f", process {pid} on {machine} since {since}"
        super().__init__(path, f"another host uses it{holder}", "stop that one")


class AdminSocketError(FrontdeskError):
    """The socket for operators can't be opened."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(
            f"The socket for operators can't be opened at {path}: {reason}. Set another path with admin_socket=, "
            "or disable it with admin_socket=False."
        )


class OperatorError(FrontdeskError):
    """A running host does not answer an operator's program, or rejected its request. `code` has the reason."""

    def __init__(self, message: str, *, code: str = "unavailable") -> None:
        self.code = code
        super().__init__(message)


class LeadershipLostError(FrontdeskError):
    """The leadership was lost: another process may have it, so its work here was cancelled."""

    def __init__(self, channel: str, name: str) -> None:
        self.channel, self.name = channel, name
        super().__init__(f"channel {channel!r} has lost its leadership {name!r}; ask for it again to go on")


class SealError(FrontdeskError):
    """A value of a channel can't be decrypted: its key is missing, or the value was changed."""


class TaskError(FrontdeskError):
    """A task can't be registered or scheduled."""


class Phrase(NamedTuple):
    """A sentence of the catalogue of texts, by its key, with its values. A value may be a phrase too."""

    key: str
    values: Mapping[str, Any] = {}


def install_hint(extra: str, python: str | None = None) -> str:
    """Return the command that installs an extra, for a checkout and for a wheel. `python` runs pip, if it is given."""
    pip = "pip" if python is None else f"{python} -m pip"
    if extra == "testing":
        # The extra is a distribution of its own, which pip does not find in a checkout.
        return f'{pip} install "frontdesk[testing]", or {pip} install . ./packages/frontdesk-testing in a checkout'
    return f'{pip} install ".[{extra}]" in a checkout of Frontdesk, or {pip} install "the-wheel.whl[{extra}]"'
