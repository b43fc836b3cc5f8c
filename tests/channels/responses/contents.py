"""Strategies for whatever a target may say, and in which pieces."""

import base64
from collections import Counter
from typing import Any

from agent_framework import AgentResponse, AgentResponseUpdate, Content
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

CLIENT_TOOLS = ("look", "ask")
PIXEL = "data:image/png;base64," + base64.b64encode(b"pixel").decode()

# Half of a character among them, as a model's service may cut one in two.
words = st.text(max_size=6) | st.sampled_from(["\ud83d", "\ude00"])
some_words = st.text(min_size=1, max_size=6)
_regions = st.lists(
    st.fixed_dictionaries({"start_index": st.integers(0, 9), "end_index": st.integers(0, 9)}), max_size=2
)
_citations = st.one_of(
    st.fixed_dictionaries({"type": st.just("citation"), "url": st.just("https://example.com"), "title": words}),
    st.fixed_dictionaries({"type": st.just("citation"), "file_id": st.just("file_1"), "title": words}),
    st.fixed_dictionaries({"type": st.just("citation"), "url": words, "annotated_regions": _regions}),
)


def _text() -> SearchStrategy[Content]:
    annotations: Any = st.none() | st.lists(_citations, max_size=2)
    kinds = st.sampled_from([{}, {}, {"core": {"model_output_kind": "refusal"}}, {"model_output_kind": "refusal"}])
    return st.builds(Content.from_text, words, annotations=annotations, additional_properties=kinds.map(dict))


def _thoughts() -> SearchStrategy[Content]:
    return st.builds(
        Content.from_text_reasoning,
        id=st.sampled_from([None, None, "r1", "r2"]),
        text=st.none() | words,
        protected_data=st.none() | some_words,
    )


def _media() -> SearchStrategy[Content]:
    return st.sampled_from(
        [
            Content.from_uri(PIXEL, media_type="image/png"),
            Content.from_data(b"%PDF", "application/pdf"),
            Content.from_uri("https://example.com/a.png", media_type="image/png"),
            Content.from_hosted_file("file_7", name="a.txt"),
            Content.from_image_generation_tool_result(outputs=Content.from_uri(PIXEL, media_type="image/png")),
            Content.from_image_generation_tool_result(
                image_id="draft", outputs=[Content.from_uri(PIXEL, media_type="image/png")]
            ),
            Content.from_oauth_consent_request("https://example.com/consent"),
            Content.from_error(message="something is missing"),
        ]
    )


def _unseen() -> SearchStrategy[Content]:
    return st.sampled_from(
        [
            Content.from_usage({"input_token_count": 3, "output_token_count": 2}),
            Content.from_hosted_vector_store("vs_1"),
            Content.from_image_generation_tool_call(image_id="draft"),
        ]
    )


class _Calls:
    """Calls come in pieces, the name with the first, and results after their calls.

    Within one message a call that has its result leaves its id to no other: the framework would take them for one.
    """

    def __init__(self) -> None:
        self.ended: Counter[str] = Counter()
        """How many have got their result in the present message."""
        self.named: set[str] = set()
        self.open: list[str] = []

    def client(self, draw: DrawFn) -> Content:
        number = draw(st.integers(0, 1))
        return self._piece(draw, f"c{number}", CLIENT_TOOLS[number])

    def host(self, draw: DrawFn) -> Content:
        slot = f"h{draw(st.integers(0, 1))}"
        call_id = f"{slot}-{self.ended[slot]}"
        if call_id not in self.open:
            self.named.discard(call_id)
            self.open.append(call_id)
        return self._piece(draw, call_id, "add")

    def _piece(self, draw: DrawFn, call_id: str, name: str) -> Content:
        first = call_id not in self.named
        self.named.add(call_id)
        return Content.from_function_call(call_id, name if first else "", arguments=draw(st.none() | words))

    def orphan(self, draw: DrawFn) -> Content:
        return Content("function_call", arguments=draw(some_words))

    def result(self, draw: DrawFn) -> Content:
        if not self.open:
            return Content.from_function_result("unknown", result="x")
        call_id = self.open.pop(draw(st.integers(0, len(self.open) - 1)))
        self.ended[call_id.partition("-")[0]] += 1
        exception = draw(st.sampled_from([None, "the secret reason"]))
        return Content.from_function_result(call_id, result=draw(words), exception=exception)

    def draw_hosted(self, draw: DrawFn) -> Content:
        made = [
            Content.from_mcp_server_tool_call("mcp", "fetch", server_name="files", arguments={"path": "a"}),
            Content.from_mcp_server_tool_result("mcp", output=[Content.from_text("found")]),
            Content.from_code_interpreter_tool_call(call_id="code", inputs=[Content.from_text("print(")]),
            Content.from_code_interpreter_tool_result(call_id="code", outputs=[Content.from_text("1")]),
            Content.from_search_tool_call("find", tool_name="web", arguments='{"q": "x"}'),
            Content.from_search_tool_result("find", tool_name="web", result={"hits": 1}),
        ]
        return draw(st.sampled_from(made))


@st.composite
def updates(draw: DrawFn) -> list[AgentResponseUpdate]:
    """The updates of one run."""
    calls = _Calls()
    plain = [_text(), _text(), _text(), _thoughts(), _media(), _unseen()]
    special = [calls.client, calls.client, calls.host, calls.result, calls.orphan, calls.draw_hosted]
    made: list[AgentResponseUpdate] = []
    envelopes: list[AgentResponseUpdate] = []
    messages = 0
    for _ in range(draw(st.integers(0, 10))):
        envelope: dict[str, Any] = {
            "role": draw(st.sampled_from([None, "assistant", "assistant", "tool", "user"])),
            "author_name": draw(st.sampled_from([None, None, "Ann", "Ben"])),
            "message_id": draw(st.sampled_from([None, None, "m1", "m2"])),
        }
        envelopes.append(AgentResponseUpdate(contents=[], **envelope))
        before, messages = messages, len(AgentResponse.from_updates(envelopes).messages)
        if messages > before:
            calls.ended.clear()
        contents: list[Content] = []
        for _ in range(draw(st.integers(0, 2))):
            pick = draw(st.integers(0, len(plain) + len(special) - 1))
            contents.append(draw(plain[pick]) if pick < len(plain) else special[pick - len(plain)](draw))
        made.append(AgentResponseUpdate(contents=contents, **envelope))
    return made
