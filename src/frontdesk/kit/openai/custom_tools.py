"""Tools of a client's that take a text instead of arguments, for targets that know only functions. Pure.

Such a tool is offered to the target as a function with one parameter, which is the text.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from frontdesk.data.request import ClientTool
from frontdesk.errors import InvalidRequestError

_INPUT = "input"
_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {_INPUT: {"type": "string"}},
    "required": [_INPUT],
    "additionalProperties": False,
}
_SYNTAXES = ("lark", "regex")
_decoder = msgspec.json.Decoder()


def custom_tool(name: str, description: str | None, form: Mapping[str, Any] | None, where: str) -> ClientTool:
    """Make the function that stands for a tool which takes a text; its grammar becomes a part of its description."""
    parts = [description or "", _grammar(form or {"type": "text"}, where)]
    return ClientTool(name=name, description="\n\n".join(filter(None, parts)), parameters=_PARAMETERS)


def _grammar(form: Mapping[str, Any], where: str) -> str:
    kind = form.get("type")
    if kind == "text":
        return ""
    # One API has the grammar beside the type, the other below it.
    inner: Any = form.get("grammar") or form
    if kind != "grammar" or not isinstance(inner, Mapping):
        raise InvalidRequestError("The format of a tool is a text or a grammar.", param=f"{where}.format")
    grammar = cast("Mapping[str, Any]", inner)
    syntax, definition = grammar.get("syntax"), grammar.get("definition")
    if syntax not in _SYNTAXES or not isinstance(definition, str):
        message = "A grammar has a `definition`, and the `syntax` lark or regex."
        raise InvalidRequestError(message, param=f"{where}.format")
    return f"The {_INPUT} has to match this {syntax} grammar:\n{definition}"


def input_arguments(text: str) -> str:
    """Return the arguments with which the function is called for a text."""
    return msgspec.json.encode({_INPUT: text}).decode()


def input_of(arguments: str) -> str:
    """Return the text that a model has put into the arguments; all of them, if it has not kept to the parameter."""
    try:
        given: Any = _decoder.decode(arguments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return arguments
    text: Any = cast("dict[str, Any]", given).get(_INPUT) if isinstance(given, dict) else None
    return text if isinstance(text, str) else arguments
