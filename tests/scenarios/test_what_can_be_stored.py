"""What an agent leaves behind must have a JSON form; what has none is an error at the turn that made it."""

from typing import Any

from agent_framework import ContextProvider

from tests.scenarios.cast import scripted
from tests.scenarios.desk import open_desk


class _Leaves(ContextProvider):
    """Leaves a value in the session at its first turn."""

    def __init__(self, value: Any) -> None:
        super().__init__("leaves")
        self.value = value

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        if self.value is not None:
            state["left"], self.value = self.value, None


async def test_a_state_without_a_json_form_fails_the_turn_that_made_it() -> None:
    agent = scripted(lambda _: ["done"], context_providers=[_Leaves(object())])
    async with open_desk(agent) as desk:
        failed = await desk.ask("one", session_id="mine")
        assert (failed.status_code, failed.json()["error"]["code"]) == (500, "not_storable")
        assert (await desk.ask("two", session_id="mine")).json()["text"] == "done"
        assert desk.said("mine") == ["one", "two", "done"]
        assert desk.history("mine")[0].additional_properties["hosting"]["status"] == "failed"


async def test_a_state_that_has_one_is_there_at_the_next_turn() -> None:
    agent = scripted(lambda _: ["done"], context_providers=[_Leaves({"deep": [1, 2.5, None, "x"]})])
    async with open_desk(agent) as desk:
        for _ in range(2):
            assert (await desk.ask("go", session_id="mine")).status_code == 200
        (session,) = desk.sessions()
        assert session.state["state"]["leaves"]["left"] == {"deep": [1, 2.5, None, "x"]}
