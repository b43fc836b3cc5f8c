"""What actors and faults share: the site, the ledger, and the counts of a campaign."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from random import Random

from frontdesk_testing.messages import Person
from tests.judge.ledger import FINAL, Ledger, Run
from tests.judge.site import Process, Site
from tests.judge.wire import Answer, CutError

RETRIES = 400
AFTERMATH = 5.0
"""How many seconds after a disturbance a run may still suffer from it: longer than a lease."""
_PAUSE = 0.1
SETTLE_PAUSE = 1.0
"""The seconds between two looks at whether all is answered. Each of them reads the answers of everybody."""
MAX_OPEN_SECONDS = 240.0
"""For how many seconds nothing may change while the store holds something to do: events rest between attempts."""
BUSY = ("session_busy", "store_unavailable", "unavailable", "too_many_requests", "rate_limit_exceeded")
"""What a client may hear at any time, and comes again for."""


class Court:
    """One campaign: who is judged, and what was seen so far."""

    def __init__(self, site: Site, ledger: Ledger, seed: int) -> None:
        self.site = site
        self.ledger = ledger
        self.seed = seed
        self.operations = 0
        self.done: Counter[str] = Counter()
        """Operations by actor."""
        self.faults: Counter[str] = Counter()
        self.unexpected: Counter[str] = Counter()
        """Answers that no promise forbids, and nobody would like to see."""
        self.starved = 0
        """How often a host was late with nothing to do, and no fault to blame."""
        self.cut_off: list[tuple[str, Person, str]] = []
        """The keys of tools that were cut off, with their requesters and the messages that asked them."""
        self.culprits: list[Person] = []
        """Those who said something that ends whoever answers it."""
        self.seen: dict[str, list[str]] = {}
        """What the conversations of the page show at the end, for verdicts about them."""
        self._disturbing = 0
        self._quiet_at = 0.0
        self._words = count(1)

    def word(self, prefix: str) -> str:
        """A word that is said once."""
        return f"{prefix}{next(self._words)}"

    def host(self, rng: Random) -> Process:
        """A host to ask, alive or not."""
        return rng.choice(self.site.hosts)

    @contextmanager
    def disturb(self) -> Iterator[None]:
        """Note that whatever runs in the background now, or begins until a little later, may be interrupted."""
        self._disturbing += 1
        self._mark()
        try:
            yield
        finally:
            self._disturbing -= 1
            self._quiet_at = time.monotonic() + AFTERMATH
            self._mark()

    @property
    def quiet(self) -> bool:
        """Tell whether nothing disturbs the hosts."""
        return self._disturbing == 0 and time.monotonic() >= self._quiet_at

    def starve(self) -> None:
        """Note that the hosts do not get the time of the machine that their leases need."""
        self.starved += 1
        with self.disturb():
            pass

    def _mark(self) -> None:
        for run in self.ledger.runs.values():
            if not run.statuses or run.statuses[-1][1] not in FINAL:
                run.disturbed = True

    def note_kill(self) -> None:
        """Note whose answers are on their way when a process is killed, or loses its leases."""
        for approval in self.ledger.approvals.values():
            # Who has left may still be worked for.
            approval.killed = approval.killed or approval.asking > 0 or approval.answers[-1:] == ["cut"]

    def enter_run(self, run_id: str) -> Run:
        """Enter a background run."""
        return self.ledger.runs.setdefault(run_id, Run(run_id, disturbed=not self.quiet))

    def note(self, actor: str, answer: Answer) -> None:
        """Count an answer that is no success."""
        if not answer.ok and answer.code not in BUSY:
            self.unexpected[f"{actor}: {answer.status} {answer.code}"] += 1

    async def until_quiet(self, missing: Callable[[], Awaitable[int]], seconds: float) -> None:
        """Wait until nothing is missing, or no host has done anything for so long, nor has anything to do."""
        left, progress, still, quiet = -1, (-1,), 0.0, 0.0
        while left and quiet < seconds and still < MAX_OPEN_SECONDS:
            before = (left, progress)
            open_work = self.site.open_work()
            left, progress = await missing(), (*self.site.progress(), open_work)
            still = still + SETTLE_PAUSE if (left, progress) == before else 0.0
            quiet = quiet + SETTLE_PAUSE if still and not open_work else 0.0
            await asyncio.sleep(SETTLE_PAUSE)

    async def insist(self, host: Process, path: str, body: object, *, by: int = 0) -> Answer:
        """Ask again until somebody answers; for what must be known when the faults are over."""
        last = "nothing"
        for _ in range(RETRIES):
            try:
                answer = await (host.get(path, by=by) if body is None else host.post(path, body, by=by))
                if answer.code not in BUSY:
                    return answer
                last = f"{answer.status} {answer.code}"
            except CutError as error:
                last = repr(error)
            await asyncio.sleep(_PAUSE)
        raise RuntimeError(f"nobody answers {path} at host {host.number} (alive: {host.alive}): {last}")
