"""Finds the answers to open questions in a message. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from msgspec import UNSET

from frontdesk.channels.a2a.errors import invalid
from frontdesk.channels.a2a.questions import OpenQuestion
from frontdesk.channels.a2a.schema import PartIn
from frontdesk.framework.workflow_requests import chosen, extract_choices
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.request import ClientOutput

MAX_REASON_LENGTH = 4096
_IDS = ("id", "approvalId", "approval_id", "questionId", "question_id", "callId", "call_id")
_DECISIONS = ("approved", "approve", "decision", "answer", "value")
_VALUES = ("value", "answer", "output", "response", "result", "approved")
_APPROVING = frozenset({"approve", "approved", "allow", "accept", "ok"})
_REJECTING = frozenset({"reject", "rejected", "deny", "denied", "decline"})
_WORDS = extract_choices(bool)
_PLAIN_TYPES: Mapping[str, type[Any]] = {"bool": bool, "int": int, "float": float, "str": str}


class Answers(NamedTuple):
    approvals: tuple[ApprovalAnswer, ...] = ()
    outputs: tuple[ClientOutput, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.approvals or self.outputs)


def find_answers(parts: Sequence[PartIn], questions: Sequence[OpenQuestion]) -> Answers:
    """Return the answers in a message. Without answers it is the next turn of its task."""
    by_id = {question.question_id: question for question in questions}
    given = [answer for part in parts for answer in _answers_in(part, by_id)]
    text = "\n".join(part.text for part in parts if part.text is not None).strip()
    if given:
        return _from_data(given, by_id, text)
    only_text = all(part.text is not None for part in parts)
    return _from_text(text, questions[0]) if only_text and len(questions) == 1 else Answers()


def _answers_in(part: PartIn, questions: Mapping[str, OpenQuestion]) -> Iterator[Mapping[str, Any]]:
    if part.data is UNSET:
        return
    data: Any = part.data
    if isinstance(data, dict):
        listed: Any = cast("dict[str, Any]", data).get("answers")
        data = cast("list[Any]", listed) if isinstance(listed, list) else [cast("Any", data)]
    for one in cast("list[Any]", data) if isinstance(data, list) else ():
        if not isinstance(one, dict):
            continue
        answer = cast("dict[str, Any]", one)
        named = _id_in(answer)
        if named in questions:
            yield answer
        elif named is not None and any(name in answer for name in _DECISIONS[:2]):
            raise invalid(f"No open question of this task has the id {named[:64]!r}.", "message.parts")


def _id_in(answer: Mapping[str, Any]) -> str | None:
    return next((answer[name] for name in _IDS if isinstance(answer.get(name), str)), None)


def _from_data(given: Sequence[Mapping[str, Any]], questions: Mapping[str, OpenQuestion], text: str) -> Answers:
    approvals: dict[str, ApprovalAnswer] = {}
    outputs: dict[str, ClientOutput] = {}
    for answer in given:
        question = questions[_id_in(answer) or ""]
        name = question.question_id
        if name in approvals or name in outputs:
            raise invalid(f"The question {name} is answered twice.", "message.parts")
        if question.is_approval:
            reason = answer.get("reason") or text or None
            approvals[name] = _approval(question, answer, reason)
        else:
            outputs[name] = ClientOutput(call_id=name, output=_value(answer))
    return Answers(tuple(approvals.values()), tuple(outputs.values()))


def _approval(question: OpenQuestion, answer: Mapping[str, Any], reason: Any) -> ApprovalAnswer:
    digest = answer.get("digest")
    if digest is not None and digest != question.digest:
        raise invalid("The digest is not that of the open question. Read the task again.", "message.parts")
    if reason is not None and (not isinstance(reason, str) or len(reason) > MAX_REASON_LENGTH):
        raise invalid(f"reason must be a string of at most {MAX_REASON_LENGTH} characters.", "message.parts")
    for name in _DECISIONS:
        if name in answer:
            decided = answer[name]
            said = _decision(decided) if isinstance(decided, str) else decided
            if isinstance(said, bool):
                return ApprovalAnswer(approval_id=question.question_id, approved=said, reason=reason)
    raise invalid("An answer to an approval must have approved: true or false.", "message.parts")


def _value(answer: Mapping[str, Any]) -> Any:
    for name in _VALUES:
        if name in answer:
            return answer[name]
    raise invalid("An answer to a question must have a value.", "message.parts")


def _decision(text: str) -> bool | None:
    word = text.strip().strip(".!").casefold()
    if word in _APPROVING or word in _REJECTING:
        return word in _APPROVING
    choice = chosen(_WORDS, word)
    return None if choice is None else choice.value


def _from_text(text: str, question: OpenQuestion) -> Answers:
    """Return the answer of a text to the only open question, if it is one."""
    if question.is_approval:
        decided = _decision(text)
        if decided is None:
            return Answers()
        return Answers(approvals=(ApprovalAnswer(approval_id=question.question_id, approved=decided),))
    value = _fit(text, question)
    return Answers() if value is UNSET else Answers(outputs=(ClientOutput(call_id=question.question_id, output=value),))


def _fit(text: str, question: OpenQuestion) -> Any:
    """Return the value that a text is for the type of a question, or UNSET."""
    wanted: Any = question.response_type
    wanted = _PLAIN_TYPES.get(wanted, wanted) if isinstance(wanted, str) else wanted
    choices = extract_choices(wanted)
    if choices:
        choice = chosen(choices, text)
        return UNSET if choice is None else choice.value
    if question.choices:
        return next((label for label in question.choices if label.casefold() == text.casefold()), UNSET)
    if wanted is str or wanted is Any or wanted in ("Any", "object"):
        return text if text else UNSET
    if wanted in (int, float):
        try:
            return wanted(text) if len(text) <= 64 else UNSET
        except ValueError:
            return UNSET
    return UNSET
