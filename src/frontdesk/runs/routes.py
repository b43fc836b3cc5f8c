"""The route of a run's answer."""

from collections.abc import Mapping
from typing import Any

from frontdesk.data.delivery import Route
from frontdesk.data.request import AdmittedRequest
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.routing import ORIGINATING
from frontdesk.sessions.record import answer_hosting
from frontdesk.sessions.turn import Turn


class Routes:
    """Computes the route of an answer once, so that all records of it agree."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    async def of(self, turn: Turn) -> Route:
        """Return the route of a turn's answer, as it was when it was first needed."""
        if turn.route is None:
            turn.route = await self._planner.route(turn.admitted) if turn.admitted.is_delivered() else ORIGINATING
        return turn.route

    async def answer_hosting(self, turn: Turn) -> Mapping[str, Any]:
        """Return the `hosting` property of an answer, for targets that store it before it is recorded."""
        return answer_hosting(turn.admitted.request.channel, await self.of(turn))

    async def returns(self, admitted: AdmittedRequest) -> bool:
        """Tell whether an answer would also go back to where its request came from.

        The answer itself is routed at its end: until then people are linked, unlinked, and seen elsewhere.
        """
        return not admitted.targets_elsewhere() or (await self._planner.route(admitted)).originating
