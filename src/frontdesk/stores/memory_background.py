"""Background runs of the in-memory store."""

from collections.abc import Sequence

from frontdesk.data.background import BackgroundRun
from frontdesk.errors import LostRunError, TooManyRequestsError

TOO_MANY = "Too many runs wait in the background."
TOO_MANY_OF_OWNER = "Too many of your runs are in the background."
RETRY_AFTER = 5.0


class MemoryBackground:
    """Runs in the background that have not ended."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[str, str], BackgroundRun] = {}

    async def get(self, owner: str, run_id: str) -> BackgroundRun | None:
        return self.jobs.get((owner, run_id))

    async def of_owner(self, owner: str) -> Sequence[BackgroundRun]:
        return [job for job in self.jobs.values() if job.admitted.owner == owner]

    async def claim(self, holder: str, *, limit: int, skip: Sequence[tuple[str, str]] = ()) -> Sequence[BackgroundRun]:
        free = [job for job in self.jobs.values() if job.holder != holder and job.key not in skip][:limit]
        taken = [job.replace(holder=holder, fence=job.fence + 1) for job in free]
        self.jobs.update({job.key: job for job in taken})
        return taken

    async def renew(self, jobs: Sequence[BackgroundRun]) -> Sequence[BackgroundRun]:
        return [self.jobs[job.key] for job in jobs if self._holds(job)]

    def _holds(self, job: BackgroundRun) -> bool:
        current = self.jobs.get(job.key)
        return current is not None and current.fence == job.fence

    def check(self, job: BackgroundRun) -> None:
        if not self._holds(job):
            raise LostRunError

    def check_fence(self, owner: str, run_id: str, fence: int) -> None:
        current = self.jobs.get((owner, run_id))
        if current is None or current.fence != fence:
            raise LostRunError

    def check_room(self, job: BackgroundRun, most_waiting: int, most_of_owner: int) -> None:
        owner = job.admitted.owner
        if sum(other.admitted.owner == owner for other in self.jobs.values()) >= most_of_owner:
            raise TooManyRequestsError(TOO_MANY_OF_OWNER, retry_after=RETRY_AFTER)
        if not job.holder and sum(not other.holder for other in self.jobs.values()) >= most_waiting:
            raise TooManyRequestsError(TOO_MANY, retry_after=RETRY_AFTER)

    def add(self, job: BackgroundRun) -> None:
        self.jobs[job.key] = job

    def save(self, job: BackgroundRun) -> None:
        # A cancellation that was requested meanwhile is kept.
        self.jobs[job.key] = job.replace(cancelled=self.jobs[job.key].cancelled)

    def cancel(self, owner: str, run_id: str) -> None:
        job = self.jobs.get((owner, run_id))
        if job is not None:
            self.jobs[owner, run_id] = job.replace(cancelled=True)

    def end(self, owner: str, run_id: str) -> None:
        self.jobs.pop((owner, run_id), None)
