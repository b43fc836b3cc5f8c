"""A process that stores a request and links its sender, and ends itself at a commit: PLACE POINT PASSES."""

import asyncio
import sys

from frontdesk.clock import SystemClock
from frontdesk.models.delivery import InboxItem
from frontdesk_testing.crash import CrashPlan, _watch_commits
from tests.access.linking import join, who
from tests.access.test_stored_requests import Access, build, event
from tests.faults.linking_steps import store_at


async def answer(access: Access, item: InboxItem) -> str | None:
    """Take the next event of the sender and finish it. Return its id if it is answered, None if it is refused."""
    found = await access.store.inbox.next(item.channel, item.conversation_id)
    if found is None:
        return None
    if await access.store.identities.link(item.caller.identity) is not None:
        async with access.store.transaction() as transaction:
            transaction.finish(found)
        return found.event_id
    grant = await access.requests.prepare(found)
    async with access.store.transaction() as transaction:
        transaction.finish(found, error="link_required")
        if grant is not None:
            access.requests.add(transaction, grant)
    return None


async def play(access: Access) -> list[str]:
    """Accept an event, store its request, link its sender and answer. Begin where an earlier process has ended."""
    item = event("b")
    async with access.store.transaction() as transaction:
        transaction.accept(item)
    reached = [await answer(access, item)]
    if await access.store.identities.link(who("b"), fresh=True) is None:
        await join(access.links, "b", "a")
    reached += [await answer(access, item) for _ in range(2)]
    return [event_id for event_id in reached if event_id is not None]


async def main(place: str, point: str, passes: str) -> None:
    store = store_at(place)
    await store.open()
    await store._sweep.stop()
    _watch_commits(store._engine, CrashPlan(point, int(passes)))  # type: ignore[arg-type]
    await play(build(store, clock=SystemClock()))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
