"""The A2A agent of the framework."""

from agent_framework.a2a import A2AAgent
from checks import ANSWER, LATER, QUESTION, URL, check, same, tell

BASE = URL.removesuffix("/v1") + "/a2a"


def connect():
    return A2AAgent(name="Concierge", url=BASE)


@check("A2A JSON-RPC", "answer")
async def answer():
    same((await connect().run(QUESTION)).text, ANSWER)


@check("A2A JSON-RPC", "stream")
async def stream():
    stream = connect().run(QUESTION, stream=True)
    pieces = [update.text async for update in stream if update.text]
    same("".join(pieces), ANSWER)
    same((await stream.get_final_response()).text, ANSWER)


@check("A2A JSON-RPC", "history")
async def history():
    agent = connect()
    session = agent.create_session()
    await agent.run(QUESTION, session=session)
    same((await agent.run("and", session=session)).text, LATER)


@check("A2A JSON-RPC", "approval")
async def approval():
    agent = connect()
    session = agent.create_session()
    asked = await agent.run("refund 5", session=session)
    same(len(asked.user_input_requests), 1)
    done = await agent.run("yes", session=session)
    same(done.text.endswith("The tool said: refunded 5"), True)


tell()
