"""Tools that need approval: asked for, and approved again and again until it is clear what became of that."""

import asyncio

from tests.judge.actors.base import Actor
from tests.judge.ledger import Approval
from tests.judge.wire import CutError

TRIES = 25
_PAUSE = 0.05


class Approvals(Actor):
    """Have the agent ask, and answer."""

    name = "approvals"

    async def act(self) -> None:
        key = self.court.word("key")
        asked = await self.ask("/invocations", {"message": f"a{key} act:{key}"}, by=1)
        if asked is None or not asked.ok or not asked.body["approvals"]:
            return
        approval = self.ledger.approvals[key] = Approval(key, approved=self.rng.random() < 0.85)
        self._ids = {**getattr(self, "_ids", {}), key: asked.body["approvals"][0]["id"]}
        for _ in range(TRIES):
            if await self._answer(approval, self._ids[key], leaves=self.leaves()):
                return
            await asyncio.sleep(_PAUSE)

    async def _answer(self, approval: Approval, name: str, *, leaves: bool = False) -> bool:
        body = {"approval": {"id": name, "approved": approval.approved}}
        approval.asking += 1
        try:
            answer = await self.ask("/invocations", body, by=1, leaves=leaves)
        finally:
            approval.asking -= 1
        if answer is None:
            approval.answers.append("cut")
        elif answer.ok and answer.body["status"] == "completed":
            approval.answers.append("done" if approval.approved else "denied")
        else:
            approval.answers.append(answer.code or answer.body["status"])
        return _is_final(approval)

    async def settle(self) -> None:
        """Answer once more what is open: whatever was approved is done by then, or can be."""
        for approval in list(self.ledger.approvals.values()):
            name = getattr(self, "_ids", {}).get(approval.key)
            for _ in range(TRIES):
                if name is None or _is_final(approval):
                    break
                try:
                    if await self._answer(approval, name):
                        break
                except CutError:
                    pass
                await asyncio.sleep(_PAUSE)


def _is_final(approval: Approval) -> bool:
    """Return True if it is clear what became of an approval. One that has expired is answered once more."""
    last = approval.answers[-2:]
    return last[-1:] in (["done"], ["denied"], ["approval_answered"]) or last == ["approval_expired"] * 2
