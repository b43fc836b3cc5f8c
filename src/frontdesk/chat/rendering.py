"""Renders results and replies as messages in a platform's dialect, within its limits. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple, cast

from agent_framework import AgentResponse, Content, Message, WorkflowRunResult
from msgspec import structs

from frontdesk.chat.i18n.wording import ENGLISH_WORDING, Wording
from frontdesk.chat.media import is_too_large, outbound_file
from frontdesk.chat.messages import Button, OutboundMessage
from frontdesk.chat.questions import (
    approval_buttons,
    choice_buttons,
    name_on_button,
    question_in_words,
    with_long_labels,
)
from frontdesk.display.escaping import escape_line, escape_text
from frontdesk.framework.contents import display_call, file_name
from frontdesk.framework.outputs import output_json, read_output
from frontdesk.framework.types import is_response, whole_outputs
from frontdesk.framework.workflow_requests import (
    MAX_BUTTONS,
    approvals_in,
    build_call_id,
    calls_in,
    extract_choices,
    extract_requests,
    is_request,
    question_text,
)
from frontdesk.markdown import Dialect, Document, Unit, lay_out, pack, parse, parse_growing, split, split_with_starts
from frontdesk.markdown.nodes import Block, Break, Inline, Item, Link, List, Paragraph, Text
from frontdesk.markdown.plain_text import one_line, split_text
from frontdesk.models.approval import PendingApproval, QuestionView
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.reply import Reply
from frontdesk.models.result import HostedRunResult

_MAX_CITATIONS = 20
_MAX_READ = 200
_MAX_TITLE_LENGTH = 120
_MAX_URL_LENGTH = 2_000


class Citation(NamedTuple):
    """A source: its title and its URL. The URL may be empty."""

    title: str
    url: str


def extract_citations(contents: Iterable[Content]) -> list[Citation]:
    """Return the distinct sources of texts in citation order, at most 20.

    Sources whose URL is already in the text are omitted.
    """
    texts = [content for content in contents if content.type == "text"]
    written = "".join(content.text or "" for content in texts)
    found: dict[str, Citation] = {}
    for annotation in islice(chain.from_iterable(content.annotations or () for content in texts), _MAX_READ):
        citation = _citation(cast("Mapping[str, Any]", annotation))
        if citation is None or (citation.url and citation.url in written):
            continue
        if len(found) < _MAX_CITATIONS:
            found.setdefault(citation.url or citation.title, citation)
    return list(found.values())


def source_blocks(citations: Iterable[Citation], wording: Wording) -> tuple[Block, ...]:
    """Return the list of sources below an answer, or an empty tuple if there are none."""
    items = tuple(Item((Paragraph((_render_citation(citation),)),)) for citation in citations)
    return (Paragraph((Text(wording.say("citations.sources")),)), List(items, start=1)) if items else ()


def source_lines(citations: Iterable[Citation], wording: Wording) -> str:
    """Return the list of sources as text."""
    lines = [f"{number}. {' '.join(dict.fromkeys(filter(None, cited)))}" for number, cited in enumerate(citations, 1)]
    return "\n".join((wording.say("citations.sources"), *lines)) if lines else ""


def _citation(annotation: Mapping[str, Any]) -> Citation | None:
    if annotation.get("type") != "citation":
        return None
    url, title = _text(annotation.get("url")), one_line(_text(annotation.get("title")))
    url = url if len(url) <= _MAX_URL_LENGTH and not any(letter.isspace() for letter in url) else ""
    shown = f"{title[: _MAX_TITLE_LENGTH - 1]}…" if len(title) > _MAX_TITLE_LENGTH else title
    return Citation(shown or url, url) if shown or url else None


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _render_citation(citation: Citation) -> Link | Text:
    return Link((Text(citation.title),), citation.url) if citation.url else Text(citation.title)


ToBlocks = Callable[[Document], Sequence[dict[str, Any]] | None]
"""Returns the platform's own blocks of a document; `None` if it would not take them."""


@dataclass(frozen=True, kw_only=True)
class Renderer:
    """Renders messages for one platform."""

    dialect: Dialect | None
    """The dialect of the platform; `None` leaves texts as they are."""
    limit: int
    unit: Unit = "characters"
    has_buttons: bool = True
    max_sent_bytes: int | None = None
    to_blocks: ToBlocks | None = None
    """Makes the platform's own blocks of Markdown; without it, a message is only a text."""
    wording: Wording = ENGLISH_WORDING
    """The buttons and words for questions."""

    def answer(self, result: Any) -> list[OutboundMessage]:
        value, shared = result, dict[str, PendingApproval]()
        if isinstance(result, HostedRunResult):
            hosted = cast("HostedRunResult[Any]", result)
            value, shared = hosted.result, {question.approval_id: question for question in hosted.questions}
        if isinstance(value, str):
            return self.markdown(value)
        if is_response(value):
            parts = [*self._messages(value.messages, _role(value)), *self._questions(_list_questions(value), shared)]
            return parts + [part for request in _requests(value) for part in self._request_of_agent(request)]
        if isinstance(value, WorkflowRunResult):
            return self._workflow(value, shared)
        return []

    def reply(self, reply: Reply) -> list[OutboundMessage]:
        """Return the messages for a reply, with the buttons below its text."""
        parts = self.plain(escape_text(reply.full_text) if reply.buttons else reply.full_text)
        if parts and reply.buttons and self.has_buttons:
            buttons = tuple(Button(text=escape_line(button.text), data=button.data) for button in reply.buttons)
            parts[-1] = structs.replace(parts[-1], buttons=buttons)
        return parts + [part for content in reply.media for part in self._media(content)]

    def markdown(
        self, text: str, *, partial: bool = False, citations: Sequence[Citation] = ()
    ) -> list[OutboundMessage]:
        """Return the messages for an agent's text, with its sources. `partial` marks a text that still grows."""
        if self.dialect is None:
            return self._split("\n\n".join(filter(None, (text, source_lines(citations, self.wording)))))
        document = parse(text, partial=partial)
        document = Document((*document.blocks, *source_blocks(citations, self.wording)))
        if self.to_blocks is None:
            return self._render(document, self.dialect)
        packed = pack(document, self.dialect, self.limit, unit=self.unit)
        return [message for part in packed for message in self._in_blocks(part, self.dialect, self.to_blocks)]

    def render_growing(self, text: str) -> list[tuple[OutboundMessage, int]]:
        """Return the messages of a growing text, each with an offset into the text.

        The text from this offset on can be rendered separately and then starts with this message. The offset is 0 for
        messages that need the preceding text, for example one that starts inside a list.
        """
        if self.dialect is None:
            return [(message, 0) for message in self._split(text)]
        document, places = parse_growing(text)
        if self.to_blocks is None:
            return self._render_placed(document, self.dialect, places)
        shown: list[tuple[OutboundMessage, int]] = []
        number = 0
        for part in pack(document, self.dialect, self.limit, unit=self.unit):
            messages = self._in_blocks(part, self.dialect, self.to_blocks)
            starts = [places[number], *[0] * (len(messages) - 1)]
            shown += zip(messages, starts, strict=False)
            number += len(part.blocks)
        return shown

    def _render_placed(
        self, document: Document, dialect: Dialect, places: Sequence[int]
    ) -> list[tuple[OutboundMessage, int]]:
        layout = lay_out(document, dialect)
        known = dict(zip(layout.starts, places, strict=True))
        parts = split_with_starts(layout, dialect, self.limit, self.unit)
        return [
            (OutboundMessage(text=part.text, entities=part.entities), known.get(start, 0))
            for part, start in parts
            if part.text.strip()
        ]

    def _in_blocks(self, document: Document, dialect: Dialect, to_blocks: ToBlocks) -> list[OutboundMessage]:
        """Return a document as one message of blocks, or as several messages if it is too long for one."""
        messages = self._render(document, dialect)
        blocks = to_blocks(document) if len(messages) == 1 else None
        return messages if blocks is None else [structs.replace(messages[0], blocks=tuple(blocks))]

    def plain(self, text: str) -> list[OutboundMessage]:
        """Return the messages for a text that is not Markdown."""
        return self._split(text) if self.dialect is None else self._render(_literal(text), self.dialect)

    def _split(self, text: str) -> list[OutboundMessage]:
        # A platform takes no message without visible text.
        units = "utf16" if self.unit == "utf16" else "characters"
        return [OutboundMessage(text=part) for part in split_text(text, self.limit, units=units) if part.strip()]

    def _render(self, document: Document, dialect: Dialect) -> list[OutboundMessage]:
        parts = split(document, dialect, self.limit, unit=self.unit)
        return [OutboundMessage(text=part.text, entities=part.entities) for part in parts if part.text.strip()]

    def _request_of_agent(self, content: Content) -> list[OutboundMessage]:
        payload: dict[str, Any] = content.parse_arguments() or {}
        kind = payload.get("response_type")
        labels = [escape_line(str(label)) for label in payload.get("choices") or ()]
        plain: dict[Any, Any] = {"str": str, "int": int, "float": float, "bool": bool}
        return self._request(question_text(payload.get("data")), str(content.call_id), plain.get(kind, kind), labels)

    def _request(self, question: str, call_id: str, wanted: Any, labels: Sequence[str]) -> list[OutboundMessage]:
        """Render a workflow question. Its choices become buttons if there are few of them."""
        if not self.has_buttons or not 0 < len(labels) <= MAX_BUTTONS:
            return self.plain(question_in_words(question, wanted, labels, self.wording))
        if wanted is bool:
            labels = [self.wording.say("question.yes"), self.wording.say("question.no")]
        return self._with_buttons(with_long_labels(question, labels), choice_buttons(call_id, labels))

    def _with_buttons(self, question: str, buttons: tuple[Button, ...]) -> list[OutboundMessage]:
        *before, last = self.plain(question) or [OutboundMessage(text=question)]
        return [*before, structs.replace(last, buttons=buttons)]

    def _workflow(self, result: WorkflowRunResult, shared: Mapping[str, PendingApproval]) -> list[OutboundMessage]:
        parts: list[OutboundMessage] = []
        for output in whole_outputs(result):
            said = read_output(output)
            parts += self.plain(output_json(output)) if said is None else self._messages(said)
        waiting = extract_requests(result)
        for request in calls_in(waiting):
            wanted: Any = request.response_type
            labels = [choice.label for choice in extract_choices(wanted)]
            parts += self._request(question_text(request.data), build_call_id(request), wanted, labels)
        return parts + self._questions(approvals_in(waiting), shared)

    def _messages(self, messages: Sequence[Message], role: str = "assistant") -> list[OutboundMessage]:
        parts: list[OutboundMessage] = []
        for message in messages:
            if message.role != role:
                continue
            texts = (content.text or "" for content in message.contents if content.type == "text")
            parts += self.markdown("".join(texts), citations=extract_citations(message.contents))
            for content in message.contents:
                parts += self._media(content)
        return parts

    def _media(self, content: Content) -> list[OutboundMessage]:
        if content.type == "uri" and content.uri:
            return self.plain(content.uri)
        if content.type != "data":
            return []
        if is_too_large(content, self.max_sent_bytes):
            name = file_name(content) or self.wording.say("media.unnamed")
            return self.plain(self.wording.say("media.too_large", name=name))
        file = outbound_file(content)
        return [] if file is None else [OutboundMessage(media=(file,))]

    def _questions(self, requests: Sequence[Content], shared: Mapping[str, PendingApproval]) -> list[OutboundMessage]:
        """Render a question for each pending call: all arguments, with the buttons below its last part."""
        parts: list[OutboundMessage] = []
        for request in requests:
            approval_id = str(request.id)
            if approval_id in shared:
                parts += self._render_waiting(shared[approval_id])
                continue
            tool, arguments = display_call(request)
            parts += self._render_question(f"{self.wording.say('approval.ask', tool=tool)}\n{arguments}", approval_id)
        return parts

    def approver_question(self, view: QuestionView) -> list[OutboundMessage]:
        """Return the messages that ask an approver: the requester, the call with all arguments, and the expiry."""
        return self._render_question(self.wording.asks(view), view.approval.approval_id)

    def render_settled(self, question: PendingApproval, by: ChannelIdentity | None) -> OutboundMessage:
        """Return the message that replaces a decided question.

        It is always a single message, because only the last message of a long question is replaced. If the arguments
        are too long for it, their end is shown.
        """
        text, arguments = self.wording.describe_settled(question, by)
        message, *more = self.plain(f"{text}\n{arguments}" if arguments else text)
        size = min(len(arguments), self.limit)
        while more and size:
            size = size * 3 // 4
            message, *more = self.plain(f"{text}\n…{arguments[-size:]}" if size else text)
        return message

    def _render_waiting(self, question: PendingApproval) -> list[OutboundMessage]:
        """Tell the requester which approvers a run waits for. Add buttons if the requester is one of them."""
        terms = question.terms
        shows = terms is None or terms.shows_arguments
        text = self.wording.waits(question, arguments=shows)
        if terms is not None and terms.asks_requester:
            return self._render_question(text, question.approval_id)
        *before, last = self.plain(text) or [OutboundMessage(text=text)]
        return [*before, structs.replace(last, asks=question.approval_id)]

    def _render_question(self, question: str, approval_id: str) -> list[OutboundMessage]:
        if self.has_buttons:
            return self._with_buttons(question, approval_buttons(approval_id, self.wording))
        words = self.wording.say("approval.words", name=name_on_button(approval_id))
        return self.plain(f"{question}\n\n{words}")


def _literal(text: str) -> Document:
    """Return a document that shows a text literally."""
    inlines: list[Inline] = []
    for line in text.split("\n"):
        inlines += [Text(line), Break(hard=True)]
    return Document((Paragraph(tuple(inlines[:-1])),))


def _role(response: AgentResponse[Any]) -> str:
    """Return the role to show: the agent's, or the user's if there is no other, as in an echo."""
    return "user" if all(message.role == "user" for message in response.messages) else "assistant"


def _list_questions(response: AgentResponse[Any]) -> list[Content]:
    return [content for content in response.user_input_requests if content.type == "function_approval_request"]


def _requests(response: AgentResponse[Any]) -> list[Content]:
    return [content for message in response.messages for content in message.contents if is_request(content)]
