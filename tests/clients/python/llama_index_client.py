"""llama-index, on both APIs."""

import base64

from checks import ANSWER, LAMP, LATER, PICTURE, PIXEL, QUESTION, ROOM, URL, check, fails, same, tell
from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel


class Room(BaseModel):
    """A room."""

    number: int
    view: str


def switch_lamp(on: bool) -> str:
    """Switch the lamp."""
    return "The lamp is on." if on else "The lamp is off."


like = OpenAILike(
    model="Concierge",
    api_base=URL,
    api_key="any",
    is_chat_model=True,
    is_function_calling_model=True,
    should_use_structured_outputs=True,
    max_retries=0,
    context_window=8192,
)
responses = OpenAIResponses(model="gpt-4o", api_base=URL, api_key="any", max_retries=0)

for door, model in (("Chat Completions", like), ("Responses", responses)):

    @check(door, "answer")
    def answer():
        same(model.chat([ChatMessage(QUESTION)]).message.content, ANSWER)

    @check(door, "stream")
    def stream():
        pieces = [chunk.delta for chunk in model.stream_chat([ChatMessage(QUESTION)])]
        same("".join(filter(None, pieces)), ANSWER)
        same(len(list(filter(None, pieces))) > 1, True)

    @check(door, "history")
    def history():
        before = [ChatMessage(QUESTION), ChatMessage(ANSWER, role="assistant")]
        same(model.chat([*before, ChatMessage("and")]).message.content, LATER)

    @check(door, "tools")
    def tools():
        lamp = FunctionTool.from_defaults(switch_lamp)
        said = [ChatMessage("the lamp, please")]
        asked = model.chat_with_tools([lamp], chat_history=said)
        (call,) = model.get_tool_calls_from_response(asked)
        output = ChatMessage(
            lamp(**call.tool_kwargs).content, role="tool", additional_kwargs={"tool_call_id": call.tool_id}
        )
        same(model.chat_with_tools([lamp], chat_history=[*said, asked.message, output]).message.content, LAMP)

    @check(door, "structure")
    def structure():
        made = model.as_structured_llm(Room).chat([ChatMessage("a room")])
        same(made.raw.model_dump(), ROOM)

    @check(door, "pictures")
    def pictures():
        picture = ImageBlock(image=base64.b64decode(PIXEL.partition(",")[2]), image_mimetype="image/png")
        same(model.chat([ChatMessage(blocks=[TextBlock(text="look"), picture])]).message.content, PICTURE)

    @check(door, "failure")
    def failure():
        for ask in (model.chat, lambda messages: list(model.stream_chat(messages))):
            order = f"{door[0]}-{ask.__name__}-llama-index"
            with fails():
                ask([ChatMessage(f"charge {order}")])
            same(model.chat([ChatMessage(f"charges of {order}")]).message.content, "1")


tell()
