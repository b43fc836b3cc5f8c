"""langchain-openai, on both APIs."""

from checks import ANSWER, LAMP, LATER, PICTURE, PIXEL, QUESTION, ROOM, URL, check, fails, same, tell
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Room(BaseModel):
    """A room."""

    number: int
    view: str


@tool
def switch_lamp(on: bool) -> str:
    """Switch the lamp."""
    return "The lamp is on." if on else "The lamp is off."


def extract_text(message):
    return message.text if isinstance(message.text, str) else message.text()


for door, options in (("Chat Completions", {"use_responses_api": False}), ("Responses", {"use_responses_api": True})):
    model = ChatOpenAI(model="Concierge", base_url=URL, api_key="any", max_retries=0, **options)

    @check(door, "answer")
    def answer():
        same(extract_text(model.invoke(QUESTION)), ANSWER)

    @check(door, "stream")
    def stream():
        pieces = [extract_text(chunk) for chunk in model.stream(QUESTION)]
        same("".join(pieces), ANSWER)
        same(len(list(filter(None, pieces))) > 1, True)

    @check(door, "history")
    def history():
        same(extract_text(model.invoke([HumanMessage(QUESTION), AIMessage(ANSWER), HumanMessage("and")])), LATER)

    @check(door, "tools")
    def tools():
        bound = model.bind_tools([switch_lamp])
        said = [HumanMessage("the lamp, please")]
        asked = bound.invoke(said)
        (call,) = asked.tool_calls
        result = ToolMessage(switch_lamp.invoke(call["args"]), tool_call_id=call["id"])
        same(extract_text(bound.invoke([*said, asked, result])), LAMP)

    @check(door, "structure")
    def structure():
        same(model.with_structured_output(Room, method="json_schema").invoke("a room").model_dump(), ROOM)

    @check(door, "pictures")
    def pictures():
        parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
        same(extract_text(model.invoke([HumanMessage(parts)])), PICTURE)

    @check(door, "failure")
    def failure():
        for ask in (model.invoke, lambda text: list(model.stream(text))):
            order = f"{door[0]}-{ask.__name__}-langchain"
            with fails():
                ask(f"charge {order}")
            same(extract_text(model.invoke(f"charges of {order}")), "1")


tell()
