"""The base path of the clients of `azure-ai-projects`: the same APIs under `/openai/v1`."""

from typing import Any

from openai import AsyncOpenAI

from frontdesk import AgentFrameworkHost
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import EchoAgent, serving


async def test_the_base_path_of_azure_clients_was_not_served() -> None:
    channels = [
        ResponsesChannel(path="/desk"),
        ConversationsChannel(path="/desk"),
        ChatCompletionsChannel(path="/desk"),
    ]
    async with serving(AgentFrameworkHost(EchoAgent(), channels=channels)) as client:
        async with AsyncOpenAI(base_url=f"{client.base_url}/desk/openai/v1", api_key="any", max_retries=0) as openai:
            talk = await openai.conversations.create()
            answer = await openai.responses.create(model="m", input="hello", conversation=talk.id)
            assert "hello" in answer.output_text
            assert (await openai.responses.retrieve(answer.id)).output_text == answer.output_text
            said: Any = [{"role": "user", "content": "hello"}]
            completion = await openai.chat.completions.create(model="m", messages=said)
            assert completion.choices[0].message.content == answer.output_text
            assert [model.id async for model in openai.models.list()]
        unknown = await client.http.get("/desk/openai/v1/nothing")
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_url")
