"""Scenario 10 of the design: a channel of one's own, and a result that comes through whole."""

from typing import Any

from agent_framework import Agent, AgentResponse, Content, Message, UsageDetails
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk import (
    AgentFrameworkHost,
    Caller,
    Channel,
    ChannelContext,
    ChannelContribution,
    ChannelIdentity,
    ChannelRequest,
    ChannelSession,
    HostedRunResult,
)
from frontdesk_testing import EchoAgent, serving
from tests.scenarios.cast import ScriptedClient, two_voices


class MyChannel(Channel):
    """The channel of the scenario: a name, and `contribute`; with us it also says who calls."""

    name = "mine"
    path = "/mine"
    requires_auth_when_public = False

    def __init__(self, run_hook: Any = None) -> None:
        self.results: list[HostedRunResult[Any]] = []
        self.run_hook = run_hook

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        async def endpoint(request: Request) -> Response:
            body = await request.json()
            asked = ChannelRequest(
                channel=self.name,
                operation="message.create",
                input=body["text"],
                session=ChannelSession(key=body["session"]),
                background=bool(body.get("later")),
            )
            caller = Caller(identity=ChannelIdentity(self.name, body["user"]))
            self.results.append(await context.run(asked, caller))
            return JSONResponse({"id": self.results[-1].run.run_id})

        return ChannelContribution(routes=[Route("/messages", endpoint, methods=["POST"])])


def _agent() -> Agent:
    def script(messages: list[Message]) -> list[Any]:
        said = " / ".join(one.text for one in messages if one.role == "user")
        return [said, Content.from_uri("https://desk.example/map.png", media_type="image/png")]

    return Agent(ScriptedClient(script), name="Concierge")


async def test_the_endpoint_runs_the_target_and_gets_all_that_it_said() -> None:
    channel = MyChannel()
    async with serving(AgentFrameworkHost(_agent(), channels=[channel])) as client:
        for text in ("one", "two"):
            answer = await client.http.post("/mine/messages", json={"text": text, "session": "s", "user": "ann"})
            assert answer.status_code == 200, answer.text
        await client.http.post("/mine/messages", json={"text": "three", "session": "s", "user": "bob"})
    first, second, other = (one.result for one in channel.results)
    assert [one.text for one in (first, second, other)] == ["one", "one / two", "three"]
    assert [one.type for one in second.messages[-1].contents] == ["text", "uri"]
    assert channel.results[1].run.session_key == "s"


class Booking(EchoAgent):
    """Answers with all that an answer can have."""

    async def run(self, messages: Any = None, **_: Any) -> AgentResponse[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        value: Any = {"nights": 2}
        return AgentResponse(
            messages=[Message("assistant", ["Booked."])],
            usage_details=UsageDetails(input_token_count=3, output_token_count=2),
            value=value,
        )


async def test_the_value_and_the_usage_come_through() -> None:
    channel = MyChannel()
    async with serving(AgentFrameworkHost(Booking(), channels=[channel])) as client:
        await client.http.post("/mine/messages", json={"text": "two nights", "session": "s", "user": "ann"})
    (hosted,) = channel.results
    assert hosted.result.value == {"nights": 2}
    assert hosted.result.usage_details == {"input_token_count": 3, "output_token_count": 2}


async def test_an_operation_of_the_design_could_not_go_to_the_background() -> None:
    channel = MyChannel()
    async with serving(AgentFrameworkHost(_agent(), channels=[channel])) as client:
        body = {"text": "one", "session": "s", "user": "ann", "later": True}
        answer = await client.http.post("/mine/messages", json=body)
        assert answer.status_code == 200
        assert channel.results[0].run.status == "queued"


async def test_a_hook_names_whose_session_it_is() -> None:
    """The wire can't say whose memory it reads; the operator's hook can."""

    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        assert request.session is not None
        return request.replace(session=request.session.replace(isolation_key="everybody"))

    channel = MyChannel(run_hook=hook)
    async with serving(AgentFrameworkHost(_agent(), channels=[channel])) as client:
        for user, text in (("ann", "one"), ("bob", "two")):
            await client.http.post("/mine/messages", json={"text": text, "session": "s", "user": user})
    assert channel.results[1].result.text == "one / two"


async def test_a_workflows_outputs_come_through() -> None:
    channel = MyChannel()
    async with serving(AgentFrameworkHost(two_voices(), channels=[channel])) as client:
        answer = await client.http.post("/mine/messages", json={"text": "hi", "session": "s", "user": "ann"})
        assert answer.status_code == 200, answer.text
    assert channel.results[0].result.get_outputs() == ["HI 1", "hi"]
