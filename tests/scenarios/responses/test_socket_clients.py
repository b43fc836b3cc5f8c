"""The real clients of the API on a WebSocket: the `openai` package, and agents written with `openai-agents`."""

import asyncio
from typing import Any

import pytest
from agents import Agent, ModelSettings, OpenAIResponsesWSModel, RunConfig, Runner, set_tracing_disabled
from agents.models.openai_responses import ResponsesWebSocketError
from openai import AsyncOpenAI, OpenAI

from frontdesk_testing import GatedAgent
from tests.scenarios.responses.cast import Till, agent, build_answering, call, parrot
from tests.scenarios.responses.desk import ANYONE, ResponsesHost, open_client
from tests.scenarios.responses.sockets import LAST
from tests.scenarios.responses.test_openai_agents import Eyes
from tests.scenarios.responses.test_socket import WEATHER, listener

QUIET = RunConfig(tracing_disabled=True)


@pytest.fixture(autouse=True, scope="module")
def _no_tracing() -> None:
    # It would call home.
    set_tracing_disabled(True)


async def _last(connection: Any, **body: Any) -> Any:
    await connection.response.create(model="Concierge", **body)
    async for event in connection:
        if event.type in LAST:
            return event
    raise AssertionError("the connection ended first")


async def test_the_asynchronous_client_of_the_openai_package() -> None:
    async with open_client(listener()) as desk, desk.client().responses.connect() as connection:
        first = await _last(connection, input="one", store=False)
        second = await _last(connection, input="two", store=False, previous_response_id=first.response.id)
        assert second.response.output_text == "heard one, two"
        lost = await _last(connection, input="three", previous_response_id="resp_0000")
        assert (lost.type, lost.status, lost.error.code) == ("error", 400, "previous_response_not_found")
        assert (await _last(connection, input="four")).response.output_text == "heard four"


async def test_the_synchronous_client_of_the_openai_package() -> None:
    def talk(api: OpenAI) -> list[str]:
        heard: list[str] = []
        with api.responses.connect() as connection:
            for said in ("one", "two"):
                connection.response.create(model="Concierge", input=said, store=False)
                for event in connection:
                    if event.type == "response.completed":
                        heard.append(event.response.output_text)
                        break
        return heard

    async with open_client(parrot()) as desk:
        assert await asyncio.to_thread(talk, desk.sync_client()) == ["you said one", "you said two"]


async def test_handlers_of_the_openai_package() -> None:
    said: list[str] = []
    async with open_client(parrot()) as desk, desk.client().responses.connect() as connection:
        connection.on("response.output_text.delta", lambda event: said.append(event.delta))

        connection.on("response.completed", lambda _: connection.close())
        await connection.response.create(model="Concierge", input="hello")
        await connection.dispatch_events()
    assert said == ["you ", "said ", "hello"]


async def test_a_function_and_an_approval_with_the_openai_package() -> None:
    till = Till()
    target = agent([call("weather")], ["sunny"], [call("pay", "c", amount=5)], ["paid"], tools=till.tools())
    async with open_client(target) as desk, desk.client().responses.connect() as connection:
        asked = (await _last(connection, input="weather?", tools=[WEATHER])).response
        output: Any = [{"type": "function_call_output", "call_id": asked.output[0].call_id, "output": "sun"}]
        told = (await _last(connection, input=output, previous_response_id=asked.id)).response
        assert told.output_text == "sunny"
        question = (await _last(connection, input="pay", previous_response_id=told.id)).response
        answer: Any = [{"type": "mcp_approval_response", "approval_request_id": question.output[0].id, "approve": True}]
        assert (await _last(connection, input=answer, previous_response_id=question.id)).response.output_text == "paid"
        assert till.ran == [("pay", 5)]


async def test_the_openai_package_reads_lanes_apart() -> None:
    gated = GatedAgent()
    async with open_client(gated) as desk, desk.client().responses.connect() as connection:
        await connection.response.create(model="Concierge", input="one two", stream_id="a")
        async for event in connection:
            if event.type == "response.output_text.delta":
                break
        gated.release.set()
        last = await _last(connection, input="three", stream_id="b")
        assert last.stream_id in ("a", "b")


def _agent(desk: ResponsesHost, **options: Any) -> tuple[Agent[Any], OpenAIResponsesWSModel]:
    client = AsyncOpenAI(api_key=ANYONE, base_url=f"{desk.url}/v1", max_retries=0)
    model = OpenAIResponsesWSModel(model="Concierge", openai_client=client)
    return Agent(name="Guest", instructions="Be brief.", model=model, **options), model


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_of_openai_agents_calls_its_tool(stream: bool) -> None:
    def answer(messages: Any) -> Any:
        if messages[-1].role == "tool":
            return ["there is ", str(messages[-1].contents[-1].result)]
        return [call("look", f"call_{len(messages)}", place="garden")]

    eyes = Eyes()
    async with open_client(build_answering(answer)) as desk:
        guest, model = _agent(desk, tools=[eyes.tool()])
        if stream:
            running = Runner.run_streamed(guest, "what is there?", run_config=QUIET)
            async for _ in running.stream_events():
                pass
            final = running.final_output
        else:
            final = (await Runner.run(guest, "what is there?", run_config=QUIET)).final_output
        await model.close()
        assert (final, eyes.seen) == ("there is a cat in the garden", ["garden"])
        assert len(desk.tap.connections) == 1


async def test_an_agent_of_openai_agents_continues_what_is_not_stored() -> None:
    async with open_client(listener()) as desk:
        guest, model = _agent(desk, model_settings=ModelSettings(store=False))
        first = await Runner.run(guest, "one", auto_previous_response_id=True, run_config=QUIET)
        second = await Runner.run(guest, "two", previous_response_id=first.last_response_id, run_config=QUIET)
        assert second.final_output == "heard one, two"
        assert desk.runs() == []
        with pytest.raises(ResponsesWebSocketError) as caught:
            await Runner.run(guest, "three", previous_response_id="resp_0000", run_config=QUIET)
        assert caught.value.code == "previous_response_not_found"
        await model.close()
