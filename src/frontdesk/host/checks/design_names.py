"""The host's parameters by the names that the design of channel hosts gives them."""

from typing import TypedDict

from frontdesk.abc.linker import IdentityLinker
from frontdesk.abc.runner import DurableTaskRunner

_TWICE = "{}: it is the same as {}=; give one of them"
_DEBUG = (
    "debug: the host shows no traceback to a caller; leave it out, and find the reason of an error in the log, under "
    "the id that the caller was given"
)


class DesignNames(TypedDict, total=False):
    """Other names: `identity_linker` for `linker`, `durable_task_runner` for `runner`; `debug` can only be false."""

    identity_linker: IdentityLinker | None
    durable_task_runner: DurableTaskRunner | None
    debug: bool


class Spelling:
    """The linker and the runner, by whichever name they were given; an unknown name is a `TypeError`."""

    def __init__(self, names: DesignNames, linker: IdentityLinker | None, runner: DurableTaskRunner | None) -> None:
        unknown = next((name for name in names if name not in DesignNames.__annotations__), None)
        if unknown is not None:
            raise TypeError(f"AgentFrameworkHost.__init__() got an unexpected keyword argument {unknown!r}")
        self.findings = [_DEBUG] if names.get("debug") else []
        other_linker, other_runner = names.get("identity_linker"), names.get("durable_task_runner")
        if linker is not None and other_linker is not None:
            self.findings.append(_TWICE.format("identity_linker", "linker"))
        if runner is not None and other_runner is not None:
            self.findings.append(_TWICE.format("durable_task_runner", "runner"))
        self.linker = linker or other_linker
        self.runner = runner or other_runner
