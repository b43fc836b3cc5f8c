"""What actors and faults share: the site, the ledger, and the counts of a campaign."""

import asyncio
from collections import Counter
from itertools import count
from random import Random

from tests.judge.ledger import FINAL, Ledger
from tests.judge.site import Process, Site
from tests.judge.wire import Answer, CutError

RETRIES = 200
_PAUSE = 0.1
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
        self.over = False
        self._words = count(1)

    def word(self, prefix: str) -> str:
        """A word that is said once."""
        return f"{prefix}{next(self._words)}"

    def host(self, rng: Random) -> Process:
        """A host to ask, alive or not."""
        return rng.choice(self.site.hosts)

    def disturb(self) -> None:
        """Note that whatever runs in the background may be interrupted by what happens now."""
        for run in self.ledger.runs.values():
            if not run.statuses or run.statuses[-1][1] not in FINAL:
                run.disturbed = True

    def note(self, actor: str, answer: Answer) -> None:
        """Count an answer that is no success."""
        if not answer.ok and answer.code not in BUSY:
            self.unexpected[f"{actor}: {answer.status} {answer.code}"] += 1

    async def insist(self, host: Process, path: str, body: object, *, by: int = 0) -> Answer:
        """Ask again until somebody answers; for what must be known when the faults are over."""
        for _ in range(RETRIES):
            try:
                answer = await (host.get(path, by=by) if body is None else host.post(path, body, by=by))
                if answer.code not in BUSY:
                    return answer
            except CutError:
                pass
            await asyncio.sleep(_PAUSE)
        raise RuntimeError(f"nobody answers {path}: is the host gone?")
