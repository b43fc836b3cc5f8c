"""The question of a workflow as a form on the page: checked twice, answered once."""

from typing import Annotated, Any, Literal

import pytest
from agent_framework import (
    Executor,
    Message,
    Workflow,
    WorkflowAgent,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)
from pydantic import AfterValidator, BaseModel, Field

from frontdesk import register_model
from tests.channels.web.visiting import Visitor, open_visitor, web_host


def _lucky(nights: int) -> int:
    if nights == 13:
        raise ValueError("no")
    return nights


class Stay(BaseModel):
    """What a guest may answer."""

    name: str = Field(title="Your name", max_length=40)
    room: Literal["attic", "garden", "sea view"]
    nights: Annotated[int, Field(ge=1, le=30), AfterValidator(_lucky)] = 1
    breakfast: bool = False


register_model(Stay, "stay-of-the-form")


class Desk(Executor):
    """Asks for a stay, and books it."""

    def __init__(self, booked: list[Stay]) -> None:
        super().__init__("desk")
        self.booked = booked

    @handler
    async def ask(self, said: str, context: WorkflowContext[str, str]) -> None:
        await context.request_info({"question": "What shall it be?"}, Stay)

    @response_handler
    async def book(self, asked: dict[str, Any], stay: Stay, context: WorkflowContext[str, str]) -> None:
        self.booked.append(stay)
        await context.yield_output(f"{stay.name} has the {stay.room} for {stay.nights}")


class AgentDesk(Desk):
    """Takes messages, as a workflow does that is run as an agent."""

    @handler
    async def hear(self, said: list[Message], context: WorkflowContext[str, str]) -> None:
        await self.ask(said[-1].text, context)


class Booking:
    """A workflow with a desk, and what was booked in it."""

    def __init__(self, *, as_agent: bool = False) -> None:
        self.booked: list[Stay] = []
        self.as_agent = as_agent

    def __call__(self) -> Workflow | WorkflowAgent:
        desk = AgentDesk(self.booked) if self.as_agent else Desk(self.booked)
        workflow = WorkflowBuilder(name="booking", start_executor=desk, output_from=[desk]).build()
        return workflow.as_agent() if self.as_agent else workflow


async def ask_for_form(ada: Visitor) -> dict[str, Any]:
    """The form that the desk shows."""
    await ada.say("hello")
    return (await ada.wait_for_messages(2))[1]


async def answer(ada: Visitor, client_id: str, number: int, **values: Any) -> Any:
    form = {"number": number, "values": values}
    return await ada.post("conversations/main/messages", client_id=client_id, form=form)


@pytest.mark.parametrize("as_agent", [False, True], ids=["workflow", "workflow as agent"])
async def test_a_form_is_shown_checked_and_answered(as_agent: bool) -> None:
    desk = Booking(as_agent=as_agent)
    async with web_host(desk) as url, open_visitor(url) as ada:
        message = await ask_for_form(ada)
        assert message["text"] == "What shall it be?"
        assert [(field["name"], field["kind"]) for field in message["form"]["fields"]] == [
            ("name", "text"),
            ("room", "choice"),
            ("nights", "integer"),
            ("breakfast", "boolean"),
        ]
        refused = await answer(ada, "f1", 2, name="", room="cellar")
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "form_invalid"
        assert refused.json()["error"]["message"] == "Your name is missing. Room must be one of its choices."
        assert (await answer(ada, "f1", 1, name="Ada", room="attic")).status_code == 404
        assert desk.booked == []
        for _ in range(2):
            assert (await answer(ada, "f1", 2, name="Ada", room="attic", nights=2)).status_code == 200
        messages = await ada.wait_for_messages(4)
        assert [one["text"] for one in messages[2:]] == [
            "Your name: Ada\nRoom: attic\nNights: 2",
            "Ada has the attic for 2",
        ]
        assert messages[1]["form"]["answered"] is True
        assert len(desk.booked) == 1


async def test_values_that_the_type_alone_refuses_leave_the_form_open() -> None:
    desk = Booking()
    async with web_host(desk) as url, open_visitor(url) as ada:
        await ask_for_form(ada)
        assert (await answer(ada, "f1", 2, name="Ada", room="attic", nights=13)).status_code == 200
        messages = await ada.wait_for_messages(4)
        assert messages[3]["role"] == "notice"

        async def is_open() -> bool:
            return not (await ada.messages())[1]["form"].get("answered")

        await ada.until(is_open)
        assert desk.booked == []
        await answer(ada, "f2", 2, name="Ada", room="attic", nights=14)
        assert (await ada.wait_for_messages(6))[5]["text"] == "Ada has the attic for 14"


async def test_the_form_of_another_visitor_can_not_be_answered() -> None:
    desk = Booking()
    async with web_host(desk) as url, open_visitor(url) as ada, open_visitor(url) as eve:
        await ask_for_form(ada)
        assert (await answer(eve, "f1", 2, name="Eve", room="attic")).status_code == 404
        assert desk.booked == []


@pytest.mark.parametrize("values", [[], "x", {"name": {"a": {"b": []}}}])
async def test_a_body_that_is_no_answer_is_refused(values: Any) -> None:
    async with web_host(Booking()) as url, open_visitor(url) as ada:
        await ask_for_form(ada)
        form = {"number": 2, "values": values}
        response = await ada.post("conversations/main/messages", client_id="f1", form=form)
        assert response.status_code == 400
