"""From results and replies to messages in the dialect of a platform, within its limits. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent_framework import AgentResponse, Content, Message, WorkflowRunResult
from msgspec import structs

from frontdesk.data.approval import PendingApproval, QuestionView
from frontdesk.data.reply import Reply
from frontdesk.data.result import HostedRunResult
from frontdesk.kit.chat.citations import Citation, citations_of, source_blocks, source_lines
from frontdesk.kit.chat.markdown import Dialect, Document, Unit, pack, parse, split
from frontdesk.kit.chat.markdown.nodes import Break, Inline, Paragraph, Text
from frontdesk.kit.chat.media import is_too_large, outbound_file
from frontdesk.kit.chat.messages import Button, OutboundMessage
from frontdesk.kit.chat.questions import approval_buttons, choice_buttons, name_on_button, question_in_words
from frontdesk.kit.chat.text import split_text
from frontdesk.kit.chat.wording import ENGLISH_WORDING, Wording
from frontdesk.kit.framework.contents import asked_for, file_name
from frontdesk.kit.framework.request_choices import MOST_BUTTONS, choices_of, question_text
from frontdesk.kit.framework.types import is_messages, is_response, whole_outputs
from frontdesk.kit.framework.workflow_requests import approvals_in, call_id_of, calls_in, is_request, requests_of

ToBlocks = Callable[[Document], Sequence[dict[str, Any]] | None]
"""Returns the platform's own blocks of a document; `None` if it would not take them."""


@dataclass(frozen=True, kw_only=True)
class Renderer:
    """Renders for one platform."""

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
        """Return the messages that are sent for a result, in their order."""
        value, shared = result, dict[str, PendingApproval]()
        if isinstance(result, HostedRunResult):
            hosted = cast("HostedRunResult[Any]", result)
            value, shared = hosted.result, {question.approval_id: question for question in hosted.questions}
        if isinstance(value, str):
            return self.markdown(value)
        if is_response(value):
            parts = [*self._messages(value.messages, _role(value)), *self._questions(_asked(value), shared)]
            return parts + [part for request in _requests(value) for part in self._request_of_agent(request)]
        if isinstance(value, WorkflowRunResult):
            return self._workflow(value, shared)
        return []

    def reply(self, reply: Reply) -> list[OutboundMessage]:
        """Return the messages that are sent for a reply, with the buttons under its text."""
        parts = self.plain(reply.full_text)
        if parts and reply.buttons and self.has_buttons:
            buttons = tuple(Button(text=button.text, data=button.data) for button in reply.buttons)
            parts[-1] = structs.replace(parts[-1], buttons=buttons)
        return parts + [part for content in reply.media for part in self._media(content)]

    def markdown(
        self, text: str, *, partial: bool = False, citations: Sequence[Citation] = ()
    ) -> list[OutboundMessage]:
        """Return the messages of an agent's text, with its sources; with `partial`, of one that still grows."""
        if self.dialect is None:
            return self._split("\n\n".join(filter(None, (text, source_lines(citations, self.wording)))))
        document = parse(text, partial=partial)
        document = Document((*document.blocks, *source_blocks(citations, self.wording)))
        if self.to_blocks is None:
            return self._rendered(document, self.dialect)
        packed = pack(document, self.dialect, self.limit, unit=self.unit)
        return [message for part in packed for message in self._in_blocks(part, self.dialect, self.to_blocks)]

    def _in_blocks(self, document: Document, dialect: Dialect, to_blocks: ToBlocks) -> list[OutboundMessage]:
        """Return the message of a document, with its blocks; its messages, if it is too long for one."""
        messages = self._rendered(document, dialect)
        blocks = to_blocks(document) if len(messages) == 1 else None
        return messages if blocks is None else [structs.replace(messages[0], blocks=tuple(blocks))]

    def plain(self, text: str) -> list[OutboundMessage]:
        """Return the messages of a text that is no Markdown."""
        return self._split(text) if self.dialect is None else self._rendered(_literal(text), self.dialect)

    def _split(self, text: str) -> list[OutboundMessage]:
        # A platform takes no message without visible text.
        units = "utf16" if self.unit == "utf16" else "characters"
        return [OutboundMessage(text=part) for part in split_text(text, self.limit, units=units) if part.strip()]

    def _rendered(self, document: Document, dialect: Dialect) -> list[OutboundMessage]:
        parts = split(document, dialect, self.limit, unit=self.unit)
        return [OutboundMessage(text=part.text, entities=part.entities) for part in parts if part.text.strip()]

    def _request_of_agent(self, content: Content) -> list[OutboundMessage]:
        """Show a request of a workflow that is run as an agent."""
        payload: dict[str, Any] = content.parse_arguments() or {}
        kind = payload.get("response_type")
        labels: list[str] = payload.get("choices") or []
        plain: dict[Any, Any] = {"str": str, "int": int, "float": float, "bool": bool}
        return self._request(question_text(payload.get("data")), str(content.call_id), plain.get(kind, kind), labels)

    def _request(self, question: str, call_id: str, wanted: Any, labels: Sequence[str]) -> list[OutboundMessage]:
        """Ask a question of a workflow, with its choices as buttons if they are few."""
        if not self.has_buttons or not 0 < len(labels) <= MOST_BUTTONS:
            return self.plain(question_in_words(question, wanted, labels, self.wording))
        if wanted is bool:
            labels = [self.wording.say("question.yes"), self.wording.say("question.no")]
        return self._with_buttons(question, choice_buttons(call_id, labels))

    def _with_buttons(self, question: str, buttons: tuple[Button, ...]) -> list[OutboundMessage]:
        *before, last = self.plain(question) or [OutboundMessage(text=question)]
        return [*before, structs.replace(last, buttons=buttons)]

    def _workflow(self, result: WorkflowRunResult, shared: Mapping[str, PendingApproval]) -> list[OutboundMessage]:
        parts: list[OutboundMessage] = []
        for output in whole_outputs(result):
            if is_response(output):
                parts += self._messages(output.messages)
            elif isinstance(output, Message):
                parts += self._messages([output])
            elif is_messages(output):
                parts += self._messages(output)
            else:
                parts += self.markdown(str(output))
        waiting = requests_of(result)
        for request in calls_in(waiting):
            wanted: Any = request.response_type
            labels = [choice.label for choice in choices_of(wanted)]
            parts += self._request(question_text(request.data), call_id_of(request), wanted, labels)
        return parts + self._questions(approvals_in(waiting), shared)

    def _messages(self, messages: Sequence[Message], role: str = "assistant") -> list[OutboundMessage]:
        parts: list[OutboundMessage] = []
        for message in messages:
            if message.role != role:
                continue
            texts = (content.text or "" for content in message.contents if content.type == "text")
            parts += self.markdown("".join(texts), citations=citations_of(message.contents))
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
        """Make a question for each call that waits; it shows all arguments, with the buttons under its last part."""
        parts: list[OutboundMessage] = []
        for request in requests:
            approval_id = str(request.id)
            if approval_id in shared:
                parts += self._waiting(shared[approval_id])
                continue
            tool, arguments = asked_for(request)
            parts += self._asked(f"{self.wording.say('approval.ask', tool=tool)}\n{arguments}", approval_id)
        return parts

    def approver_question(self, view: QuestionView) -> list[OutboundMessage]:
        """Return the messages that ask an approver: who asks for what, all arguments, and how long it waits."""
        return self._asked(self.wording.asks(view), view.approval.approval_id)

    def _waiting(self, question: PendingApproval) -> list[OutboundMessage]:
        """Tell the person for whom a run asks whom it waits for; with buttons, if they are one of those."""
        terms = question.terms
        shows = terms is None or terms.shows_arguments
        text = self.wording.waits(question, arguments=shows)
        if terms is not None and terms.asks_requester:
            return self._asked(text, question.approval_id)
        *before, last = self.plain(text) or [OutboundMessage(text=text)]
        return [*before, structs.replace(last, asks=question.approval_id)]

    def _asked(self, question: str, approval_id: str) -> list[OutboundMessage]:
        if self.has_buttons:
            return self._with_buttons(question, approval_buttons(approval_id, self.wording))
        words = self.wording.say("approval.words", name=name_on_button(approval_id))
        return self.plain(f"{question}\n\n{words}")


def _literal(text: str) -> Document:
    """Return a document that shows a text as it is."""
    inlines: list[Inline] = []
    for line in text.split("\n"):
        inlines += [Text(line), Break(hard=True)]
    return Document((Paragraph(tuple(inlines[:-1])),))


def _role(response: AgentResponse[Any]) -> str:
    """Return the role that is shown: the agent's, or the user's if there is no other, as in an echo."""
    return "user" if all(message.role == "user" for message in response.messages) else "assistant"


def _asked(response: AgentResponse[Any]) -> list[Content]:
    return [content for content in response.user_input_requests if content.type == "function_approval_request"]


def _requests(response: AgentResponse[Any]) -> list[Content]:
    return [content for message in response.messages for content in message.contents if is_request(content)]
