"""Takes the message of a chat for the answer to a question of its workflow."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_framework import Message

from frontdesk.data.request import AdmittedRequest, ChannelRequest, ClientOutput
from frontdesk.errors import InvalidRequestError, NotFoundError, Phrase
from frontdesk.kit.chat.wording import ENGLISH_WORDING
from frontdesk.kit.framework.request_choices import (
    CHOICE,
    QUESTION,
    Choice,
    choices_of,
    chosen,
    short_name,
    wanted_phrase,
)
from frontdesk.kit.framework.request_forms import FORM, check, form_of
from frontdesk.kit.framework.workflow_requests import Request, call_id_of
from frontdesk.targets.typed_input import fit_answer, is_of

_NOT_OPEN = "This question is not open any more."


def presses_choice(request: ChannelRequest) -> bool:
    """Tell whether a request presses a button of a question."""
    return QUESTION in request.attributes


def answer_of_chat(admitted: AdmittedRequest, calls: Sequence[Request]) -> AdmittedRequest:
    """Return a request as the answer to one of the open questions: the one of its button, else the first.

    A message that does not fit is refused, and the question stays open.
    """
    request = admitted.request
    call = _pressed(request, calls) if presses_choice(request) else calls[0]
    output = ClientOutput(call_id=call_id_of(call), output=_value(request, call))
    return admitted.with_request(client_outputs=(output,), input=None)


def _pressed(request: ChannelRequest, calls: Sequence[Request]) -> Request:
    for call in calls:
        if short_name(call_id_of(call)) == request.attributes[QUESTION]:
            return call
    raise NotFoundError(_NOT_OPEN)


def _value(request: ChannelRequest, call: Request) -> Any:
    wanted: Any = call.response_type
    choices = choices_of(wanted)
    if FORM in request.attributes:
        return _form_value(request.attributes[FORM], wanted, call_id_of(call))
    if presses_choice(request):
        number = request.attributes.get(CHOICE)
        if not isinstance(number, int) or not 0 <= number < len(choices):
            raise NotFoundError(_NOT_OPEN)
        return choices[number].value
    said = request.input
    if isinstance(said, Message) and is_of(said, wanted):
        return said
    text = said.text if isinstance(said, Message) else said
    if not isinstance(text, str) or not text.strip():
        raise _no_answer(wanted, choices)
    choice = chosen(choices, text)
    if choice is not None:
        return choice.value
    try:
        fit_answer(text, wanted, call_id_of(call))
    except InvalidRequestError:
        raise _no_answer(wanted, choices) from None
    return text


def _form_value(values: Any, wanted: Any, name: str) -> Any:
    """Return the values of a form, checked once more: the form was shown, and the type decides."""
    fields = form_of(wanted)
    if not fields or not isinstance(values, Mapping):
        raise NotFoundError(_NOT_OPEN)
    given = dict(cast("Mapping[str, Any]", values))
    problems = check(fields, given)
    if problems:
        raise InvalidRequestError(problems[0].sentence, param="input")
    fit_answer(given, wanted, name)
    return given


def _no_answer(wanted: Any, choices: Sequence[Choice]) -> InvalidRequestError:
    answer = wanted_phrase(wanted, [choice.label for choice in choices]) or Phrase("question.text")
    phrase = Phrase("question.first", {"answer": answer})
    return InvalidRequestError(ENGLISH_WORDING.say_phrase(phrase), param="input").saying(phrase.key, **phrase.values)
