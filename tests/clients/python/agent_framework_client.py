"""agent-framework-openai, on both APIs."""

from agent_framework import Agent, Content, Message, tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from checks import ANSWER, LAMP, LATER, PICTURE, PIXEL, QUESTION, ROOM, URL, check, fails, same, tell
from pydantic import BaseModel


class Room(BaseModel):
    """A room."""

    number: int
    view: str


@tool(approval_mode="never_require")
def switch_lamp(on: bool) -> str:
    """Switch the lamp."""
    return "The lamp is on." if on else "The lamp is off."


for door, kind in (("Chat Completions", OpenAIChatCompletionClient), ("Responses", OpenAIChatClient)):
    client = kind(model="Concierge", base_url=URL, api_key="any")

    @check(door, "answer")
    async def answer():
        same((await Agent(client).run(QUESTION)).text, ANSWER)

    @check(door, "stream")
    async def stream():
        # An update may repeat what came before it, and says so; the framework joins them.
        stream = Agent(client).run(QUESTION, stream=True)
        pieces = [update.text async for update in stream if update.text]
        same((await stream.get_final_response()).text, ANSWER)
        same(len(pieces) > 1, True)

    @check(door, "history")
    async def history():
        agent = Agent(client)
        session = agent.create_session()
        await agent.run(QUESTION, session=session)
        same((await agent.run("and", session=session)).text, LATER)

    @check(door, "tools")
    async def tools():
        same((await Agent(client, tools=[switch_lamp]).run("the lamp, please")).text, LAMP)

    @check(door, "structure")
    async def structure():
        made = await Agent(client).run("a room", options={"response_format": Room})
        same(made.value.model_dump(), ROOM)

    @check(door, "pictures")
    async def pictures():
        picture = Content.from_uri(PIXEL, media_type="image/png")
        same((await Agent(client).run(Message("user", ["look", picture]))).text, PICTURE)

    @check(door, "failure")
    async def failure():
        agent = Agent(client)
        for stream in (False, True):
            order = f"{door[0]}-{stream}-agent-framework"
            with fails():
                run = agent.run(f"charge {order}", stream=stream)
                await (run.get_final_response() if stream else run)
            same((await agent.run(f"charges of {order}")).text, "1")


tell()
