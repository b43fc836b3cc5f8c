"""litellm, on both APIs."""

import json

import litellm
from checks import ANSWER, LAMP, LATER, PICTURE, PIXEL, QUESTION, ROOM, URL, check, fails, same, tell
from pydantic import BaseModel

litellm.suppress_debug_info = True
GIVEN = {"model": "openai/Concierge", "api_base": URL, "api_key": "any", "num_retries": 0}
PARAMETERS = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}
FUNCTION = {"name": "switch_lamp", "description": "Switch the lamp.", "parameters": PARAMETERS}


class Room(BaseModel):
    """A room."""

    number: int
    view: str


def complete(messages, **options):
    return litellm.completion(messages=messages, **GIVEN, **options)


def said(text):
    return {"role": "user", "content": text}


@check("Chat Completions", "answer")
def answer():
    same(complete([said(QUESTION)]).choices[0].message.content, ANSWER)


@check("Chat Completions", "stream")
def stream():
    pieces = [chunk.choices[0].delta.content for chunk in complete([said(QUESTION)], stream=True)]
    same("".join(filter(None, pieces)), ANSWER)
    same(len(list(filter(None, pieces))) > 1, True)


@check("Chat Completions", "history")
def history():
    before = [said(QUESTION), {"role": "assistant", "content": ANSWER}]
    same(complete([*before, said("and")]).choices[0].message.content, LATER)


@check("Chat Completions", "tools")
def tools():
    offered = [{"type": "function", "function": FUNCTION}]
    asked = complete([said("the lamp, please")], tools=offered).choices[0].message
    (call,) = asked.tool_calls
    same(json.loads(call.function.arguments), {"on": True})
    result = {"role": "tool", "tool_call_id": call.id, "content": "The lamp is on."}
    messages = [said("the lamp, please"), asked.model_dump(exclude_none=True), result]
    same(complete(messages, tools=offered).choices[0].message.content, LAMP)


@check("Chat Completions", "structure")
def structure():
    same(json.loads(complete([said("a room")], response_format=Room).choices[0].message.content), ROOM)


@check("Chat Completions", "pictures")
def pictures():
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    same(complete([said(parts)]).choices[0].message.content, PICTURE)


@check("Chat Completions", "failure")
def failure():
    for stream in (False, True):
        order = f"chat-{stream}-litellm"
        with fails():
            list(complete([said(f"charge {order}")], stream=stream))
        same(complete([said(f"charges of {order}")]).choices[0].message.content, "1")


def extract_text(response):
    return "".join(part.text for item in response.output if item.type == "message" for part in item.content)


@check("Responses", "answer")
def respond():
    same(extract_text(litellm.responses(input=QUESTION, **GIVEN)), ANSWER)


@check("Responses", "stream")
def respond_in_pieces():
    events = list(litellm.responses(input=QUESTION, stream=True, **GIVEN))
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    same("".join(pieces), ANSWER)
    same(len(pieces) > 1, True)


@check("Responses", "history")
def continue_response():
    before = [said(QUESTION), {"role": "assistant", "content": ANSWER}]
    same(extract_text(litellm.responses(input=[*before, said("and")], **GIVEN)), LATER)


@check("Responses", "tools")
def respond_with_tools():
    offered = [{"type": "function", **FUNCTION}]
    asked = litellm.responses(input="the lamp, please", tools=offered, **GIVEN)
    (call,) = [item for item in asked.output if item.type == "function_call"]
    sent = {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "The lamp is on."}
    told = litellm.responses(input=[said("the lamp, please"), sent, result], tools=offered, **GIVEN)
    same(extract_text(told), LAMP)


@check("Responses", "structure")
def respond_in_form():
    same(json.loads(extract_text(litellm.responses(input="a room", text_format=Room, **GIVEN))), ROOM)


@check("Responses", "pictures")
def respond_to_picture():
    parts = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": PIXEL}]
    same(extract_text(litellm.responses(input=[said(parts)], **GIVEN)), PICTURE)


@check("Responses", "failure")
def respond_with_failure():
    for stream in (False, True):
        order = f"responses-{stream}-litellm"
        with fails():
            told = litellm.responses(input=f"charge {order}", stream=stream, **GIVEN)
            raise ValueError(str(list(told)[-1].response.error if stream else told.error))
        same(extract_text(litellm.responses(input=f"charges of {order}", **GIVEN)), "1")


tell()
