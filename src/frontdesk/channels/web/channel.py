"""`WebChatChannel`: implements the channel interface for a page with mailboxes."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, Unpack

import msgspec
from starlette.routing import BaseRoute

from frontdesk.channels.web import command_replies
from frontdesk.channels.web.api import Api
from frontdesk.channels.web.config import LIVE_TERMS, WebChatConfig, WebChatSettings
from frontdesk.channels.web.files import as_shown_file, read_files
from frontdesk.channels.web.forms import note_answer
from frontdesk.channels.web.mailbox import MAX_PIECE_LENGTH, Edit, Mailbox, MessageRef
from frontdesk.channels.web.parse import parse_chat
from frontdesk.channels.web.render import (
    build_stored,
    content_of_reply,
    extract_contents,
    extract_sources,
    list_tools,
    render_question,
    render_settled,
    storable,
)
from frontdesk.channels.web.wire import MAIN, Content, Part, SentFile, ShownFile, StoredMessage, Tool
from frontdesk.chat.i18n.wording import Wording
from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import (
    FilesFullError,
    FileTooLargeError,
    ForbiddenError,
    InvalidRequestError,
    LostEventError,
    NotFoundError,
    PushNotEditableError,
    PushRefusedError,
    RequestError,
    UnsupportedError,
)
from frontdesk.interfaces.argument_types import takes_settings
from frontdesk.interfaces.channel import Channel, ChannelContext, ChannelContribution
from frontdesk.interfaces.chat import (
    AsksApprovers,
    ChecksRecipients,
    LivePlace,
    LiveView,
    PushesParts,
    PushPart,
    ShowsNotes,
    ShowsTyping,
    StreamsReplies,
    SupportsLiveLookup,
    SupportsPushLookup,
    ToolDetail,
)
from frontdesk.interfaces.context import AnswersEvents, RendersReplies
from frontdesk.interfaces.linker import ObservesLinks
from frontdesk.models.approval import PendingApproval, QuestionView
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.live_message import LiveFence
from frontdesk.models.reply import Reply
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedRunResult

_NOTHING: dict[str, Any] = {"question": None, "buttons": (), "files": (), "tools": (), "citations": (), "form": None}


def build_handle(place: MessageRef) -> str:
    return f"{place.visitor}/{place.chat}/{place.number}"


def read_handle(handle: str) -> MessageRef:
    visitor, _, rest = handle.partition("/")
    chat, _, number = rest.partition("/")
    return MessageRef(visitor, chat, int(number))


def locate(place: LivePlace) -> MessageRef:
    return MessageRef(place.identity.native_id, parse_chat(place.conversation_id))


def build_live_edit(view: LiveView) -> Edit:
    """Return the edit that displays more of an answer. A complete answer is not edited."""
    text = storable(view.text)

    def change(before: StoredMessage) -> tuple[StoredMessage, str | None]:
        if before.state != "live":
            raise PushNotEditableError("The answer is complete.")
        # Beyond its beginning, a text is compared by what the writer says of it.
        grows = _begins(text, before) and (before.length <= MAX_PIECE_LENGTH or view.new_from >= before.length)
        after = msgspec.structs.replace(
            before if grows else _anew(before), tools=list_tools(view.tools), citations=extract_sources(view.citations)
        )
        return after, text

    return change


def build_replacement(part: PushPart, content: Content | None) -> Edit:
    """Return the edit of a delivery: complete an answer, update a question, or remove a message."""

    def change(before: StoredMessage) -> tuple[StoredMessage, str | None]:
        if part.action == "retract":
            if before.state == "removed":
                return before, None
            # Its place stays, and nothing of what it said.
            gone = msgspec.structs.replace(_anew(before), state="removed", **_NOTHING)
            return gone, ""
        if content is None:
            return msgspec.structs.replace(before, state="stopped", buttons=(), tools=_stop_tools(before.tools)), None
        fields = {name: getattr(content, name) for name in Content.__struct_fields__ if name != "text"}
        fields["tools"] = _add_times(content.tools, before.tools)
        after = msgspec.structs.replace(before, state="done", **fields)
        if part.action == "settle":
            return msgspec.structs.replace(after, origin=before.origin, buttons=()), None
        grows = before.length <= MAX_PIECE_LENGTH and _begins(content.text, before)
        return (after if grows else _anew(after)), content.text

    return change


def _begins(text: str, before: StoredMessage) -> bool:
    return len(text) >= before.length and text.startswith(before.text)


def _anew(message: StoredMessage) -> StoredMessage:
    return msgspec.structs.replace(message, epoch=message.epoch + 1)


def _add_times(tools: Sequence[Tool], before: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tool calls of a whole answer with the times measured while it was written."""
    seconds = {tool.id: tool.seconds for tool in before}
    return tuple(msgspec.structs.replace(tool, seconds=seconds.get(tool.id)) for tool in tools)


def _stop_tools(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    return tuple(msgspec.structs.replace(tool, state="stopped") if tool.state == "running" else tool for tool in tools)


_DAY = 86_400.0
_LINKING = ("link", "connect", "unlink", "whoami")
_BUSY_SECONDS = 15.0
"""The seconds for which an answer counts as being made, unless that is said again."""


class WebChatChannel(
    Channel,
    PushesParts,
    SupportsPushLookup,
    ChecksRecipients,
    AnswersEvents,
    RendersReplies,
    AsksApprovers,
    StreamsReplies,
    SupportsLiveLookup,
    ShowsNotes,
    ShowsTyping,
    ObservesLinks,
):
    """Serves a page at `/chat` and displays answers there while they are written."""

    session_family: ClassVar[Literal["caller_supplied", "host_tracked"]] = "host_tracked"
    identifies_anonymous_callers: ClassVar[bool] = True
    shares_inbox_per_person: ClassVar[bool] = True
    push_edits = True
    # A message that is complete takes no update, in the transaction that writes it.
    edits_may_be_late = False
    push_is_idempotent = True
    typing_interval: float | None = _BUSY_SECONDS / 3
    typing_with_live = True
    _context: ChannelContext | None = None
    _mailbox: Mailbox | None = None

    @takes_settings(WebChatConfig)
    def __init__(self, *, name: str = "web", path: str = "/chat", **settings: Unpack[WebChatSettings]) -> None:
        self._config = config = WebChatConfig(**settings)
        self.apply_settings(config)
        self.name, self.path, self.commands = name, path, tuple(config.commands)
        self.link_commands, self.live_terms = config.link_commands or {}, config.live_terms or LIVE_TERMS

    @property
    def tool_detail(self) -> ToolDetail:
        return self._config.tools

    def findings(self) -> list[str]:
        return self._config.findings() + self.live_terms.findings()

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        storage = context.storage.values("mailbox", holds_tokens=False)
        self._context = context
        self._mailbox = Mailbox(storage, context.now, self._config.keep_days * _DAY)
        api = Api(self.name, self.path, self._config, context, self._mailbox, _BUSY_SECONDS)
        routes: list[BaseRoute] = api.routes()
        own = {command.name for command in self.commands}
        usual = (command for command in command_replies.page_commands(context) if command.name not in own)
        return ChannelContribution(routes=routes, commands=(*usual, *self.commands))

    def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
        wording = Wording(self._require_context().texts, result.locale)
        is_own, run = result.run.channel == self.name, result.run
        where = {
            "origin": "" if is_own else run.channel,
            "run": run.run_id if is_own and run.status == "completed" else "",
        }
        contents = [
            msgspec.structs.replace(content, **where) for content in extract_contents(result, wording, self.tool_detail)
        ]
        if result.run.status == "failed":
            contents = [
                msgspec.structs.replace(content, role="notice", code="failed", text=wording.failure(content.text))
                for content in contents
            ]
        return [msgspec.to_builtins(content) for content in contents]

    def reply_parts(self, item: InboxItem, reply: Reply) -> Sequence[Any]:
        """Return the notice that displays a reply. Only the visitor can see the page."""
        return [msgspec.to_builtins(content_of_reply(reply))]

    async def push_part(self, part: PushPart) -> str | None:
        """Write or edit a message in the visitor's mailbox. Return its handle."""
        if part.replaces is not None:
            return await self._change(part, read_handle(part.replaces))
        spot = await self._spot(part.identity, part.conversation_id)
        content = await self._keep_files(part.identity, part.content)
        return await self._add(spot, content, part.idempotency_key, "done")

    async def has_recipient(self, identity: ChannelIdentity) -> bool:
        """Return False. A visitor who has written is known to the host, and no other person can have this id."""
        return False

    async def links_changed(self, people: Sequence[ChannelIdentity]) -> None:
        """Notify the open pages of visitors about changed links, so that they reload messages."""
        for identity in people:
            await self._require_mailbox().touch(identity.native_id)

    async def find_push(self, part: PushPart) -> str | None:
        """Return the handle of a message in the mailbox, or None if it was never written."""
        spot = await self._spot(part.identity, part.conversation_id)
        return await self._find(spot.visitor, part.idempotency_key)

    async def open_live(self, place: LivePlace, view: LiveView, key: str) -> str:
        """Write the start of an answer to the mailbox. Return its handle."""
        content = Content(
            text=storable(view.text), tools=list_tools(view.tools), citations=extract_sources(view.citations)
        )
        return await self._add(locate(place), content, key, "live", place.fence)

    async def update_live(self, place: LivePlace, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        edited = await self._require_mailbox().edit(read_handle(handles[0]), build_live_edit(view), quiet=True)
        if edited is None:
            raise PushNotEditableError
        return handles

    async def find_live(self, place: LivePlace, key: str) -> str | None:
        """Return the handle of a live message, or None if it was never started."""
        spot = locate(place)
        found = await self._require_mailbox().find(spot.visitor, key, chat=spot.chat)
        return None if found is None else build_handle(found)

    async def show_typing(self, place: LivePlace) -> None:
        """Show the typing notice, with its duration."""
        await self._set_busy(locate(place), _BUSY_SECONDS)

    async def end_typing(self, place: LivePlace) -> None:
        await self._set_busy(locate(place), 0.0)

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        # A visitor who has deleted the conversation meanwhile sees neither the question nor the answer.
        with suppress(NotFoundError):
            await command_replies.show_said(self._require_mailbox(), item)
        linking = [name for word in _LINKING if (name := self.link_commands.get(word, word)) is not None]
        request = await command_replies.prepare(self._require_context(), item, linking)
        if request is None:
            await self._set_busy(_parse_message_ref(item), 0.0)
        return request

    async def refuse(self, item: InboxItem, error: RequestError) -> Sequence[Reply]:
        await self._set_busy(_parse_message_ref(item), 0.0)
        await note_answer(self._require_mailbox(), item, answered=False)
        return await command_replies.refuse(self._require_context(), item, error)

    def question_in(self, content: Any) -> str | None:
        question = msgspec.convert(content, Part).question
        return None if question is None or question.outcome else question.approval_id

    def settled_question(self, approval: PendingApproval, by: ChannelIdentity | None) -> Any:
        return msgspec.to_builtins(render_settled(approval, by))

    def approver_question(self, view: QuestionView) -> Sequence[Any]:
        return [msgspec.to_builtins(render_question(view))]

    async def _add(
        self,
        spot: MessageRef,
        content: Content,
        key: str,
        state: Literal["done", "live"],
        fence: LiveFence | None = None,
    ) -> str:
        context = self._require_context()
        message = msgspec.structs.replace(build_stored(content, key, context.now()), state=state)
        try:
            number = await self._require_mailbox().add(spot, message, fence=fence)
        except LostEventError as error:
            raise PushRefusedError("This answer belongs to another process, or has ended.") from error
        except NotFoundError as error:
            raise PushRefusedError("The visitor has deleted the conversation.", code="no_conversation") from error
        return build_handle(spot._replace(number=number))

    async def _change(self, part: PushPart, place: MessageRef) -> str:
        content = None if part.content is None else await self._keep_files(part.identity, part.content)
        edited = await self._require_mailbox().edit(place, build_replacement(part, content))
        if edited is None:
            raise PushNotEditableError
        return build_handle(place)

    async def _keep_files(self, identity: ChannelIdentity, payload: Any) -> Content:
        """Return the content of a part, after storing its files for the reader."""
        part = msgspec.convert(payload, Part)
        files = [await self._keep(Caller(identity=identity), file) for file in part.media]
        return msgspec.structs.replace(part, files=tuple(files))

    async def _keep(self, reader: Caller, file: SentFile) -> ShownFile:
        """Store a file of an answer. If that fails, only its name is displayed."""
        size = len(file.data)
        try:
            [(sent, data)] = await run_sized(size, lambda: read_files([file], most=1, max_bytes=size))
            kept = await self._require_context().storage.put_file(
                reader, data, media_type=sent.media_type, name=sent.name
            )
        except (FileTooLargeError, FilesFullError, ForbiddenError, InvalidRequestError):
            return ShownFile(id="", media_type=file.media_type, name=file.name)
        return as_shown_file(kept)

    async def _spot(self, identity: ChannelIdentity, conversation_id: str | None) -> MessageRef:
        """Return the conversation of a message: the one that asked, or the person's main one."""
        if conversation_id is not None:
            return MessageRef(identity.native_id, parse_chat(conversation_id))
        home = await self._require_context().links.home(Caller(identity=identity))
        return MessageRef(home.native_id, MAIN)

    async def _find(self, visitor: str, key: str) -> str | None:
        place = await self._require_mailbox().find(visitor, key)
        return None if place is None else build_handle(place)

    async def _set_busy(self, spot: MessageRef, seconds: float) -> None:
        until = self._require_context().now() + seconds if seconds else 0.0
        await self._require_mailbox().set_busy(spot, until)

    def _require_context(self) -> ChannelContext:
        if self._context is None:
            raise UnsupportedError("The channel is not part of a host.")
        return self._context

    def _require_mailbox(self) -> Mailbox:
        if self._mailbox is None:
            raise UnsupportedError("The channel is not part of a host.")
        return self._mailbox


def _parse_message_ref(item: InboxItem) -> MessageRef:
    return MessageRef(item.caller.identity.native_id, parse_chat(item.conversation_id))
