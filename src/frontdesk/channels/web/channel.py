"""The channel itself: what the host asks of it, for a page whose messages lie in the mailbox."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal

import msgspec
from starlette.routing import BaseRoute

from frontdesk.abc.allowlist import Allowlist, Inherit
from frontdesk.abc.channel import Channel, ChannelCommand, ChannelContext, ChannelContribution
from frontdesk.abc.hooks import ResponseHook, RunHook, StreamTransformHook
from frontdesk.abc.live import LiveMode, LivePlace, LiveTerms, LiveView, ToolDetail
from frontdesk.abc.push import PushPart
from frontdesk.channels.web import replies
from frontdesk.channels.web.api import Api
from frontdesk.channels.web.client import Mailbox, Spot
from frontdesk.channels.web.config import LIVE_TERMS, FeedLimits, WebChatConfig, WebLook
from frontdesk.channels.web.files import as_shown_file, read_files
from frontdesk.channels.web.forms import note_answer
from frontdesk.channels.web.live import handle_of, place_of, read_handle, replacing, showing
from frontdesk.channels.web.parse import chat_of
from frontdesk.channels.web.render import (
    asking,
    content_of_reply,
    contents_of,
    settled,
    sources_of,
    storable,
    stored,
    tools_of,
)
from frontdesk.channels.web.theme import WebTheme
from frontdesk.channels.web.wire import MAIN, Content, Part, SentFile, ShownFile
from frontdesk.data.approval import PendingApproval, QuestionView
from frontdesk.data.delivery import InboxItem
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.limits import EventLimits
from frontdesk.data.reply import Reply
from frontdesk.data.request import ChannelRequest, OnBusy
from frontdesk.data.result import HostedRunResult
from frontdesk.errors import (
    FilesFullError,
    FileTooLargeError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    PushNotEditableError,
    PushRefusedError,
    RequestError,
    UnsupportedError,
)
from frontdesk.kit.aio.large import run_sized
from frontdesk.kit.chat.questions import name_of
from frontdesk.kit.chat.wording import Wording
from frontdesk.kit.http.limits import DEFAULT_LIMITS, Limits

_DAY = 86_400.0
_LINKING = ("link", "connect", "unlink", "whoami")
_BUSY_SECONDS = 15.0
"""The seconds for which an answer counts as being made, unless that is said again."""


class WebChatChannel(Channel):
    """Serves a page at `/chat`, and shows there what the agent says while it is written."""

    session_family: ClassVar[Literal["caller_supplied", "host_tracked"]] = "host_tracked"
    tells_callers_apart: ClassVar[bool] = True
    one_place_per_person: ClassVar[bool] = True
    push_edits = True
    push_is_idempotent = True
    typing_interval: float | None = _BUSY_SECONDS / 3
    _context: ChannelContext | None = None
    _mailbox: Mailbox | None = None

    def __init__(
        self,
        *,
        name: str = "web",
        path: str = "/chat",
        title: str = "Chat",
        greeting: str = "",
        prompts: Sequence[str] = (),
        theme: WebTheme | None = None,
        embed_origins: Sequence[str] = (),
        allowlist: Allowlist | Inherit | None = "inherit",
        confidentiality_tier: str | None = None,
        link_commands: Mapping[str, str | None] | None = None,
        commands: Sequence[ChannelCommand] = (),
        on_busy: OnBusy = "queue",
        event_limits: EventLimits | None = None,
        run_hook: RunHook | None = None,
        response_hook: ResponseHook | None = None,
        stream_transform_hook: StreamTransformHook | None = None,
        live: LiveMode = "auto",
        live_terms: LiveTerms | None = None,
        tools: ToolDetail = "names",
        keep_days: float = WebChatConfig.keep_days,
        max_text: int = WebChatConfig.max_text,
        max_conversations: int = WebChatConfig.max_conversations,
        max_files: int = WebChatConfig.max_files,
        max_file_bytes: int = WebChatConfig.max_file_bytes,
        body_timeout: float = WebChatConfig.body_timeout,
        limits: Limits | None = DEFAULT_LIMITS,
        feed: FeedLimits | None = None,
    ) -> None:
        self.name, self.path, self.allowlist, self.confidentiality_tier = name, path, allowlist, confidentiality_tier
        self.link_commands, self.commands, self.on_busy = link_commands or {}, tuple(commands), on_busy
        self.event_limits, self.live, self.live_terms = event_limits, live, live_terms or LIVE_TERMS
        self.run_hook, self.response_hook, self.stream_transform_hook = run_hook, response_hook, stream_transform_hook
        self._config = WebChatConfig(
            look=WebLook(theme=theme or WebTheme(), embed_origins=tuple(embed_origins)),
            title=title,
            greeting=greeting,
            prompts=tuple(prompts),
            keep_days=keep_days,
            max_text=max_text,
            max_conversations=max_conversations,
            max_files=max_files,
            max_file_bytes=max_file_bytes,
            body_timeout=body_timeout,
            limits=limits,
            feed=feed or FeedLimits(),
            tools=tools,
        )

    @property
    def tool_detail(self) -> ToolDetail:
        """Return how much is shown of the tools that an answer uses."""
        return self._config.tools

    def findings(self) -> list[str]:
        return self._config.findings() + self.live_terms.findings()

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        storage = context.channel_storage("mailbox", holds_tokens=False)
        self._context = context
        self._mailbox = Mailbox(storage, context.now, self._config.keep_days * _DAY)
        api = Api(self.name, self.path, self._config, context, self._mailbox, _BUSY_SECONDS)
        routes: list[BaseRoute] = api.routes()
        own = {command.name for command in self.commands}
        usual = (command for command in replies.page_commands(context) if command.name not in own)
        return ChannelContribution(routes=routes, commands=(*usual, *self.commands))

    def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
        """Return the messages of an answer as JSON values: its text, and a card for each question."""
        wording = Wording(self._need_context().texts, result.locale)
        is_own, run = result.run.channel == self.name, result.run
        where = {
            "origin": "" if is_own else run.channel,
            "run": run.run_id if is_own and run.status == "completed" else "",
        }
        contents = [
            msgspec.structs.replace(content, **where) for content in contents_of(result, wording, self.tool_detail)
        ]
        if result.run.status == "failed":
            contents = [
                msgspec.structs.replace(content, role="notice", code="failed", text=wording.failure(content.text))
                for content in contents
            ]
        return [msgspec.to_builtins(content) for content in contents]

    def reply_parts(self, item: InboxItem, reply: Reply) -> Sequence[Any]:
        """Return the notice that shows a reply; nobody but the visitor sees the page."""
        return [msgspec.to_builtins(content_of_reply(reply))]

    async def push_part(self, part: PushPart) -> str | None:
        """Write a message into the visitor's mailbox, or change one; return its handle."""
        if part.replaces is not None:
            return await self._change(part, read_handle(part.replaces))
        spot = await self._spot(part.identity, part.conversation_id)
        content = await self._kept(part.identity, part.content)
        return await self._add(spot, content, part.idempotency_key, "done")

    async def links_changed(self, people: Sequence[ChannelIdentity]) -> None:
        """Let the open pages of visitors find out whose messages they show, and what was said elsewhere."""
        for identity in people:
            await self._need_mailbox().touch(identity.native_id)

    async def find_push(self, part: PushPart) -> str | None:
        """Return the handle of a message that is in the mailbox; `None` if it was never written."""
        spot = await self._spot(part.identity, part.conversation_id)
        return await self._find(spot.visitor, part.idempotency_key)

    async def open_live(self, place: LivePlace, view: LiveView, key: str) -> str:
        """Write the beginning of an answer into the mailbox; return its handle."""
        content = Content(text=storable(view.text), tools=tools_of(view.tools), citations=sources_of(view.citations))
        return await self._add(place_of(place), content, key, "live")

    async def update_live(self, place: LivePlace, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        """Write more of an answer into the mailbox."""
        edited = await self._need_mailbox().edit(read_handle(handles[0]), showing(view), quiet=True)
        if edited is None:
            raise PushNotEditableError
        return handles

    async def find_live(self, place: LivePlace, key: str) -> str | None:
        """Return the handle of an answer that is being written; `None` if it was never begun."""
        return await self._find(place_of(place).visitor, key)

    async def show_typing(self, place: LivePlace) -> None:
        """Show that something is being answered, and for how long that holds."""
        await self._set_busy(place_of(place), _BUSY_SECONDS)

    async def end_typing(self, place: LivePlace) -> None:
        """Show that nothing is being answered."""
        await self._set_busy(place_of(place), 0.0)

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        """Return the request of an event for the target, or `None`."""
        # A visitor who has deleted the conversation meanwhile sees neither the question nor the answer.
        with suppress(NotFoundError):
            await replies.show_said(self._need_mailbox(), item)
        linking = [name for word in _LINKING if (name := self.link_commands.get(word, word)) is not None]
        request = await replies.prepare(self._need_context(), item, linking)
        if request is None:
            await self._set_busy(_spot_of(item), 0.0)
        return request

    async def refuse(self, item: InboxItem, error: RequestError) -> Sequence[Reply]:
        """Return the reason why there is no answer."""
        await self._set_busy(_spot_of(item), 0.0)
        await note_answer(self._need_mailbox(), item, answered=False)
        return await replies.refuse(self._need_context(), item, error)

    def question_in(self, content: Any) -> str | None:
        """Return the id of the question that a message asks."""
        question = msgspec.convert(content, Part).question
        return None if question is None or question.outcome else question.approval_id

    def settled_question(self, approval: PendingApproval, by: ChannelIdentity | None) -> Any:
        """Return the card of a question that was decided."""
        return msgspec.to_builtins(settled(approval, name_of(by)))

    def approver_question(self, view: QuestionView) -> Sequence[Any]:
        """Return the card that asks an approver."""
        return [msgspec.to_builtins(asking(view))]

    async def _add(self, spot: Spot, content: Content, key: str, state: Literal["done", "live"]) -> str:
        context = self._need_context()
        message = msgspec.structs.replace(stored(content, key, context.now()), state=state)
        try:
            number = await self._need_mailbox().add(spot, message)
        except NotFoundError as error:
            raise PushRefusedError("The visitor has deleted the conversation.", code="no_conversation") from error
        return handle_of(spot._replace(number=number))

    async def _change(self, part: PushPart, place: Spot) -> str:
        content = None if part.content is None else await self._kept(part.identity, part.content)
        edited = await self._need_mailbox().edit(place, replacing(part, content))
        if edited is None:
            raise PushNotEditableError
        return handle_of(place)

    async def _kept(self, identity: ChannelIdentity, payload: Any) -> Content:
        """Return what a part says, once its files are kept for their reader."""
        part = msgspec.convert(payload, Part)
        files = [await self._keep(Caller(identity=identity), file) for file in part.media]
        return msgspec.structs.replace(part, files=tuple(files))

    async def _keep(self, reader: Caller, file: SentFile) -> ShownFile:
        """Keep a file of an answer; of one that can't be kept, the name is shown."""
        size = len(file.data)
        try:
            [(sent, data)] = await run_sized(size, lambda: read_files([file], most=1, max_bytes=size))
            kept = await self._need_context().put_file(reader, data, media_type=sent.media_type, name=sent.name)
        except (FileTooLargeError, FilesFullError, ForbiddenError, InvalidRequestError):
            return ShownFile(id="", media_type=file.media_type, name=file.name)
        return as_shown_file(kept)

    async def _spot(self, identity: ChannelIdentity, conversation_id: str | None) -> Spot:
        """Return the conversation of a message: the one that asked, or else the main one of the person."""
        if conversation_id is not None:
            return Spot(identity.native_id, chat_of(conversation_id))
        home = await self._need_context().home_of(Caller(identity=identity))
        return Spot(home.native_id, MAIN)

    async def _find(self, visitor: str, key: str) -> str | None:
        place = await self._need_mailbox().find(visitor, key)
        return None if place is None else handle_of(place)

    async def _set_busy(self, spot: Spot, seconds: float) -> None:
        until = self._need_context().now() + seconds if seconds else 0.0
        await self._need_mailbox().set_busy(spot, until)

    def _need_context(self) -> ChannelContext:
        if self._context is None:
            raise UnsupportedError("The channel is not part of a host.")
        return self._context

    def _need_mailbox(self) -> Mailbox:
        if self._mailbox is None:
            raise UnsupportedError("The channel is not part of a host.")
        return self._mailbox


def _spot_of(item: InboxItem) -> Spot:
    return Spot(item.caller.identity.native_id, chat_of(item.conversation_id))
