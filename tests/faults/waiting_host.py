"""A host in a process of its own whose workflow waits for an answer, and that ends itself when it has it."""

import os
import signal
from pathlib import Path
from typing import Any

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk_testing.internals import get_components
from tests.scenarios.cast import call
from tests.scenarios.pausing import Inn, Till

SCRIPTS: dict[str, Any] = {
    "till": ([call("pay", amount=5)],),
    "till-second": (["done"],),
    "till-third": (["hello"],),
}


class Diary(list[Any]):
    """What was done, over all processes."""

    def __init__(self, place: Path) -> None:
        super().__init__()
        self._place = place

    def append(self, done: Any) -> None:
        with self._place.open("a") as file:
            file.write(f"{done}\n")


def parse_target(kind: str, diary: Diary) -> Any:
    """Return an inn, or a till with one of the scripts."""
    if kind == "inn":
        inn = Inn()
        inn.ledger = diary
        return inn
    till = Till(*SCRIPTS[kind])
    till.paid = diary
    return till


def main(port: str, root: str, kind: str, moment: str) -> None:
    """Serve until the process is killed, or ends itself before or after the record of a run is saved."""
    target = parse_target(kind, Diary(Path(root, "diary")))
    host = AgentFrameworkHost(target, channels=[InvocationsChannel()], state_dir=root)
    recorder: Any = get_components(host).recorder
    completed = recorder.record_completed

    async def killed(*arguments: Any) -> None:
        # The checkpoint is saved.
        if moment == "after":
            await completed(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    if moment != "never":
        recorder.record_completed = killed
    host.serve(port=int(port), log_level="critical")
