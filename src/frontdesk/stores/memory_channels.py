"""What the in-memory store keeps for channels. Nothing here awaits, so on one event loop every call is atomic."""

from collections.abc import Sequence

from frontdesk.data.leadership import Leadership


class MemoryLeaderships:
    """Leaderships within this process."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, str], Leadership] = {}
        self._count = 0

    async def claim(self, channel: str, name: str, holder: str) -> Leadership | None:
        held = self._holders.get((channel, name))
        if held is not None and held.holder != holder:
            return None
        self._count += 1
        leadership = Leadership(channel=channel, name=name, holder=holder, fence=self._count)
        self._holders[channel, name] = leadership
        return leadership

    async def renew(self, held: Sequence[Leadership]) -> Sequence[Leadership]:
        return [one for one in held if self._holders.get((one.channel, one.name)) != one]

    async def release(self, channel: str, name: str, holder: str) -> None:
        held = self._holders.get((channel, name))
        if held is not None and held.holder == holder:
            del self._holders[channel, name]
