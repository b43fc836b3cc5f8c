"""pydantic-ai, on both APIs."""

import base64

from checks import ANSWER, LAMP, LATER, PICTURE, PIXEL, QUESTION, ROOM, URL, check, fails, same, tell
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Room(BaseModel):
    """A room."""

    number: int
    view: str


provider = OpenAIProvider(base_url=URL, api_key="any")

for door, kind in (("Chat Completions", OpenAIChatModel), ("Responses", OpenAIResponsesModel)):
    model = kind("Concierge", provider=provider)

    @check(door, "answer")
    async def answer():
        same((await Agent(model).run(QUESTION)).output, ANSWER)

    @check(door, "stream")
    async def stream():
        async with Agent(model).run_stream(QUESTION) as result:
            pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
        same("".join(pieces), ANSWER)
        same(len(pieces) > 1, True)

    @check(door, "history")
    async def history():
        first = await Agent(model).run(QUESTION)
        same((await Agent(model).run("and", message_history=first.all_messages())).output, LATER)

    @check(door, "tools")
    async def tools():
        agent = Agent(model)

        @agent.tool_plain
        def switch_lamp(on: bool) -> str:
            """Switch the lamp."""
            return "The lamp is on." if on else "The lamp is off."

        same((await agent.run("the lamp, please")).output, LAMP)

    @check(door, "structure")
    async def structure():
        same((await Agent(model, output_type=NativeOutput(Room)).run("a room")).output.model_dump(), ROOM)

    @check(door, "pictures")
    async def pictures():
        picture = BinaryContent(base64.b64decode(PIXEL.partition(",")[2]), media_type="image/png")
        same((await Agent(model).run(["look", picture])).output, PICTURE)

    @check(door, "failure")
    async def failure():
        agent = Agent(model)
        for stream in (False, True):
            order = f"{door[0]}-{stream}-pydantic-ai"
            with fails():
                if not stream:
                    await agent.run(f"charge {order}")
                async with agent.run_stream(f"charge {order}") as result:
                    await result.get_output()
            same((await agent.run(f"charges of {order}")).output, "1")


tell()
