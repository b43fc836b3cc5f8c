"""Pieces of answers: in whichever updates they come, and whether they are streamed or complete."""

from collections import Counter

from agent_framework import AgentResponse, AgentResponseUpdate, Content
from hypothesis import given

from frontdesk.models.conversation import answer_message_id, run_of_answer
from frontdesk.streaming.pieces import (
    ArgumentsPiece,
    CallEndPiece,
    CallPiece,
    MessageEndPiece,
    Piece,
    PieceAssembler,
    QuestionPiece,
    ReasoningPiece,
    ResultPiece,
    TextPiece,
)
from tests.channels.responses.contents import CLIENT_TOOLS, updates

RUN = "run_1"


def stream(*many: AgentResponseUpdate) -> list[Piece]:
    assembler = PieceAssembler(RUN, CLIENT_TOOLS)
    for one in many:
        assembler.add(one)
    assembler.finish()
    return assembler.take()


def update(*contents: Content, message_id: str = "m1", role: str = "assistant") -> AgentResponseUpdate:
    return AgentResponseUpdate(contents=list(contents), role=role, message_id=message_id)


def build_call(arguments: str | None, name: str = "look", call_id: str = "c1", **fields: bool) -> Content:
    content = Content.from_function_call(call_id, name, arguments=arguments)
    for field, value in fields.items():
        setattr(content, field, value)
    return content


def test_an_answer_with_a_tool_has_one_id_for_each_message() -> None:
    pieces = stream(
        update(Content.from_text_reasoning(text="hm")),
        update(Content.from_text("I look"), build_call("{", name="add"), build_call("}", name="", call_id="c1")),
        update(Content.from_function_result("c1", result="3"), message_id="t1", role="tool"),
        update(Content.from_text("It is "), message_id="m2"),
        update(Content.from_text("3."), message_id="m2"),
    )
    first, tool, last = (answer_message_id(RUN, number) for number in range(3))
    assert pieces == [
        ReasoningPiece(message_id=first, text="hm"),
        TextPiece(message_id=first, text="I look"),
        CallPiece(message_id=first, call_id="c1", name="add"),
        ArgumentsPiece(message_id=first, call_id="c1", delta="{"),
        ArgumentsPiece(message_id=first, call_id="c1", delta="}"),
        CallEndPiece(message_id=first, call_id="c1", arguments="{}"),
        MessageEndPiece(message_id=first),
        ResultPiece(message_id=tool, call_id="c1", output="3"),
        MessageEndPiece(message_id=tool),
        TextPiece(message_id=last, text="It is "),
        TextPiece(message_id=last, text="3."),
        MessageEndPiece(message_id=last),
    ]
    assert run_of_answer(first) == RUN
    assert run_of_answer("their_own") is None


def test_a_client_call_that_the_framework_announces_twice_is_announced_once() -> None:
    pieces = stream(
        update(build_call('{"a": 1}')),
        update(build_call('{"a": 1}', user_input_request=True), message_id="m2"),
    )
    assert [type(piece) for piece in pieces].count(CallPiece) == 1
    (ending,) = [piece for piece in pieces if isinstance(piece, CallEndPiece)]
    assert ending.arguments == '{"a": 1}'


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert stream(update(build_call(None)))[1:3] == [
        ArgumentsPiece(message_id="msg_run_1_0", call_id="c1", delta="{}"),
        CallEndPiece(message_id="msg_run_1_0", call_id="c1", arguments="{}"),
    ]


def test_an_approval_request_is_a_question_at_the_end() -> None:
    call = build_call('{"a": 1}', name="add")
    request = Content.from_function_approval_request("apr_1", call)
    asked = AgentResponseUpdate(contents=[request], role="assistant")
    assembler = PieceAssembler(RUN)
    assembler.add(asked)
    assert [type(piece) for piece in assembler.take()] == [CallPiece, ArgumentsPiece, CallEndPiece]
    assembler.finish(AgentResponse.from_updates([asked]))
    ended, question = assembler.take()
    assert isinstance(ended, MessageEndPiece)
    assert isinstance(question, QuestionPiece)
    assert (question.question_id, question.call_id, question.name, question.arguments) == (
        "apr_1",
        "c1",
        "add",
        '{"a": 1}',
    )
    assert question.is_approval


@given(updates())
def test_each_call_is_announced_before_its_pieces_and_everything_ends(many: list[AgentResponseUpdate]) -> None:
    pieces = stream(*many)
    open_calls: Counter[str] = Counter()
    for piece in pieces:
        if isinstance(piece, CallPiece):
            open_calls[piece.call_id] += 1
        elif isinstance(piece, ArgumentsPiece):
            assert open_calls[piece.call_id] > 0
        elif isinstance(piece, CallEndPiece):
            open_calls[piece.call_id] -= 1
    assert not +open_calls
    messages = [piece.message_id for piece in pieces if isinstance(piece, MessageEndPiece)]
    assert len(messages) == len(set(messages))
    assert {piece.message_id for piece in pieces} == set(messages)


@given(updates())
def test_the_ids_of_a_stream_are_those_of_the_complete_result(many: list[AgentResponseUpdate]) -> None:
    streamed = stream(*many)
    assembler = PieceAssembler(RUN, CLIENT_TOOLS)
    for message in AgentResponse.from_updates([AgentResponseUpdate.from_dict(one.to_dict()) for one in many]).messages:
        assembler.message(message)
    assembler.finish()
    assert _texts(streamed) == _texts(assembler.take())


def _texts(pieces: list[Piece]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for piece in pieces:
        if isinstance(piece, TextPiece):
            texts[piece.message_id] = texts.get(piece.message_id, "") + piece.text
    return texts
