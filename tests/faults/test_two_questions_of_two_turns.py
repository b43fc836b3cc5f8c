"""A question of an earlier turn was lost when a later turn asked another one."""

from typing import Any

import pytest

from tests.scenarios.cast import call
from tests.scenarios.desk import open_client
from tests.scenarios.test_approvals import Bank


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
async def test_two_questions_of_two_turns_are_both_answered(order: tuple[int, int]) -> None:
    bank = Bank()
    agent = bank.agent([call("pay", "c1", amount=1)], [call("pay", "c2", amount=2)], ["done"], ["done"])
    async with open_client(agent) as desk:
        asked: dict[int, Any] = {}
        for amount in (1, 2):
            (asked[amount],) = (await desk.ask(f"pay {amount}", session_id="s")).json()["approvals"]
        for amount in order:
            answered = await desk.post({"approval": {"id": asked[amount]["id"], "approved": True}})
            assert (answered.status_code, answered.json()["text"]) == (200, "done")
        assert bank.paid == list(order)
