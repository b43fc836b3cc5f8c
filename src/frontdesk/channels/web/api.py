"""The HTTP API of the page: conversations, messages, and answers to approvals and questions."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from starlette.routing import BaseRoute, Route, WebSocketRoute

from frontdesk.asgi.messages import error_headers, send_json
from frontdesk.channels.web.account import Account, read_elsewhere
from frontdesk.channels.web.command_replies import show_said
from frontdesk.channels.web.config import WebChatConfig
from frontdesk.channels.web.conversations import (
    FIELDS_BYTES,
    Conversations,
    answer,
    begin_branch,
    build_message_ref,
    drop_empty,
    find_kept_files,
    get_visitor,
)
from frontdesk.channels.web.files import as_shown_file, file_headers, read_files, require_count, require_size
from frontdesk.channels.web.forms import note_answer, read_answer
from frontdesk.channels.web.mailbox import NO_CHAT, Chat, Mailbox, MessageRef
from frontdesk.channels.web.pages import DATA_HEADERS, OpenVerifier, Site
from frontdesk.channels.web.parse import client_id, decode, new_chat_id, number_in, read_text, to_item, to_stop
from frontdesk.channels.web.render import error_body, person_shown, storable
from frontdesk.channels.web.stream import FeedServer, parse_box, parse_query, render_chat
from frontdesk.channels.web.verify import PersonVerifier, Visitors, VisitorVerifier
from frontdesk.channels.web.wire import (
    MAIN,
    DecideBody,
    SendBody,
    SentFile,
    ShownFile,
    StopBody,
)
from frontdesk.concurrency.offload import run_sized
from frontdesk.display.escaping import argument_fields, display_arguments, escape_line, escape_text
from frontdesk.display.person_names import build_label, build_unverified_name, find_decider, list_awaited
from frontdesk.errors import (
    LinkRequiredError,
    NotFoundError,
    RequestError,
    TooManyRequestsError,
)
from frontdesk.framework.contents import get_asked_call
from frontdesk.http.endpoint import BodyDeadline, Handler, HttpCall, HttpEndpoint
from frontdesk.http.limits import Limiter
from frontdesk.http.sockets import SocketEndpoint
from frontdesk.identifiers import plain_id
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.approval import PendingApproval
from frontdesk.models.identity import Caller

PAGE_MESSAGES = 50
"""The number of messages that a page gets at once."""
_MAX_REASON_LENGTH = 2_000
_RETRY_SECONDS = 5.0


class Api:
    def __init__(
        self,
        name: str,
        path: str,
        config: WebChatConfig,
        context: ChannelContext,
        mailbox: Mailbox,
        busy_seconds: float,
    ) -> None:
        self._name, self._config = name, config
        self._context, self._mailbox = context, mailbox
        self._busy_seconds = busy_seconds
        visitors = Visitors(
            context.storage.values("visitors", holds_tokens=False),
            context.new_id,
            path,
            embeds=bool(config.look.embed_origins),
        )
        self._visitor_verifier = VisitorVerifier(name, visitors, allow_anonymous=context.anonymous_allowed)
        self._verifier = PersonVerifier(name, visitors, context, self._let_in)
        self._site = Site(path, config, visitors)
        self._feeds = FeedServer(mailbox, config, context.now, self._let_in, self._verifier)
        self._limiter = None if config.limits is None else Limiter(config.limits)
        self._deadline = BodyDeadline(config.body_timeout)
        self._account = Account(path, context, self._deadline)
        # A character of a text has six bytes at most in JSON.
        self._max_body = 6 * config.max_text + FIELDS_BYTES
        if config.max_files:
            self._max_body += config.max_file_bytes * 4 // 3 + config.max_files * FIELDS_BYTES

    def routes(self) -> list[BaseRoute]:
        everybody, chat = OpenVerifier(self._name, self._verifier), "/api/conversations/{chat}"
        chats = Conversations(self._config, self._context, self._mailbox, self._let_in, self._deadline)
        feed = SocketEndpoint(
            self._verifier,
            error_body,
            self._feeds.socket,
            self._config.feed_limits,
            self._limiter,
            allow=self._let_in,
            has_share=True,
        )
        return [
            Route("/", endpoint=HttpEndpoint(everybody, self.refuse, GET=self._site.page)),
            Route("/theme/{file}", endpoint=HttpEndpoint(everybody, self.refuse, GET=self._site.theme)),
            Route("/frame", endpoint=HttpEndpoint(everybody, self.refuse, GET=self._site.frame)),
            Route("/embed.js", endpoint=HttpEndpoint(everybody, self.refuse, GET=self._site.embed)),
            Route("/static/{version}/{name:path}", endpoint=HttpEndpoint(everybody, self.refuse, GET=self._site.file)),
            Route("/api/me", endpoint=self._endpoint(GET=self.me)),
            Route("/api/conversations", endpoint=self._endpoint(POST=chats.new)),
            Route("/api/search", endpoint=self._endpoint(GET=chats.search)),
            Route(chat, endpoint=self._endpoint(POST=chats.change, DELETE=chats.delete)),
            Route(f"{chat}/everywhere", endpoint=self._endpoint(POST=chats.track)),
            Route(f"{chat}/messages", endpoint=self._endpoint(runs=["POST"], GET=self.messages, POST=self.send)),
            Route(f"{chat}/elsewhere", endpoint=self._endpoint(GET=self.elsewhere)),
            Route(f"{chat}/stop", endpoint=self._endpoint(POST=self.stop)),
            Route("/api/approvals/{approval_id}", endpoint=self._endpoint(GET=self.question, POST=self.decide)),
            Route("/api/files/{file}", endpoint=self._endpoint(GET=self.file)),
            Route("/api/events", endpoint=self._endpoint(GET=self._feeds.events)),
            Route("/api/poll", endpoint=self._endpoint(GET=self._feeds.poll)),
            WebSocketRoute("/api/feed", endpoint=feed),
            *self._account.routes(partial(self._endpoint, self._visitor_verifier)),
        ]

    def _endpoint(
        self, verifier: VisitorVerifier | None = None, *, runs: Sequence[str] = (), **methods: Handler
    ) -> HttpEndpoint:
        return HttpEndpoint(
            verifier or self._verifier, self.refuse, limiter=self._limiter, allow=self._let_in, runs=runs, **methods
        )

    async def refuse(self, call: HttpCall, error: RequestError) -> None:
        await send_json(call.send, error.status, error_body(error), [*error_headers(error), *DATA_HEADERS])

    async def _let_in(self, caller: Caller) -> None:
        """Reject a visitor without access. A visitor who has to link is notified in the conversation."""
        with suppress(LinkRequiredError):
            await self._context.allow(caller)

    async def me(self, call: HttpCall) -> None:
        """Send the initial state of the page: settings, conversations and feed position.

        With `open`, include the last messages of an existing conversation.
        """
        await self._let_in(call.caller)
        opened = parse_query(call.scope).get("open")
        head, config, now = await self._mailbox.head(get_visitor(call)), self._config, self._context.now()
        spot = None if opened is None else MessageRef(get_visitor(call), plain_id(opened, "conversation"))
        # A page can name a conversation that is gone meanwhile; it shows another one then.
        known = spot is not None and head.chat(spot.chat) is not None
        chats = sorted(head.chats, key=lambda chat: (chat.id != MAIN, -chat.at))
        await answer(
            call,
            {
                "title": config.title,
                "logo": self._site.logo_path(call),
                "greeting": config.greeting,
                "prompts": config.prompts,
                "max_text": config.max_text,
                "max_files": config.max_files,
                "max_file_bytes": config.max_file_bytes,
                "conversations": [render_chat(chat, now) for chat in chats],
                "cursor": head.change,
                "box": parse_box(get_visitor(call)),
                "links": await self._context.links.status(call.caller) is not None,
                "opened": await self._open(call, spot) if spot is not None and known else None,
            },
        )

    async def messages(self, call: HttpCall) -> None:
        """Send the messages of a conversation: the last ones, or those before a number."""
        await self._let_in(call.caller)
        before = number_in(parse_query(call.scope), "before")
        await answer(call, await self._open(call, build_message_ref(call), before))

    async def _open(self, call: HttpCall, spot: MessageRef, before: int | None = None) -> dict[str, Any]:
        # Read first: what changes meanwhile comes behind this cursor.
        cursor = (await self._mailbox.head(spot.visitor)).change
        shown: dict[str, Any] = {"messages": await self._mailbox.page(spot, before, PAGE_MESSAGES), "cursor": cursor}
        if before is None:
            shown["elsewhere"] = await read_elsewhere(self._context, self._name, call.caller, spot.chat)
        return shown

    async def elsewhere(self, call: HttpCall) -> None:
        await self._let_in(call.caller)
        chat, before = await self._get_chat(call), number_in(parse_query(call.scope), "before")
        await answer(call, await read_elsewhere(self._context, self._name, call.caller, chat.id, before))

    async def send(self, call: HttpCall) -> None:
        """Store a message and queue its answer. Idempotent: a page without a response repeats it under the same id."""
        body, kept = await self._read_message(call)
        given, text = client_id(body.client_id), read_text(body, self._config.max_text)
        await self._let_in(call.caller)
        chat, now, visitor = await self._get_chat(call), self._context.now(), get_visitor(call)
        again: list[tuple[ShownFile, SentFile]] = []
        if body.instead_of:
            spot, branch_id = MessageRef(visitor, chat.id, body.instead_of), new_chat_id(visitor, f"branch:{given}")
            again = await self._keep_again(call, spot, body, sum(len(data) for _, data in kept))
            chat = await begin_branch(self._mailbox, spot, branch_id, now, self._config.max_conversations)
        question = ""
        if body.form is not None:
            question, text = await read_answer(self._mailbox, MessageRef(visitor, chat.id), body.form)
        item = to_item(
            msgspec.structs.replace(body, client_id=given, files=(*(sent for _, sent in again), *body.files)),
            text,
            channel=self._name,
            caller=call.caller,
            chat=chat.id,
            now=now,
            files=[
                *(shown for shown, _ in again),
                *[await self._keep(call.caller, file, data) for file, data in kept],
            ],
            question=question,
            previous_run=chat.run,
            sender=(await self._visitor_verifier.verify(call.scope, call.headers)).identity.native_id,
        )
        if self._is_control(item.request.attributes.get("command")):
            item = item.replace(kind="control")
        # Accepted first: if this process ends before the message is shown, the one that answers it shows it.
        if not await self._context.events.accept(item):
            await drop_empty(self._mailbox, MessageRef(visitor, chat.id))
            # The page keeps it, and can send it again.
            raise TooManyRequestsError("You are sending messages too fast. Wait a moment.", retry_after=_RETRY_SECONDS)
        number = await show_said(self._mailbox, item, busy_until=now + self._busy_seconds)
        await note_answer(self._mailbox, item, answered=True)
        await answer(call, {"number": number, "conversation": chat.id})

    async def _keep_again(
        self, call: HttpCall, spot: MessageRef, body: SendBody, size: int
    ) -> list[tuple[ShownFile, SentFile]]:
        """Return the files that a message keeps from an earlier one. `size` is the size of its new files."""
        require_count(len(body.keep) + len(body.files), self._config.max_files)
        again = await find_kept_files(self._context, self._mailbox, call.caller, spot, body.keep)
        require_size(size + sum(shown.size for shown, _ in again), self._config.max_file_bytes)
        return again

    async def _read_message(self, call: HttpCall) -> tuple[SendBody, list[tuple[SentFile, bytes]]]:
        raw = await call.json_body(limit=self._max_body, deadline=self._deadline)
        return await run_sized(len(raw), self._decode_body, raw)

    def _decode_body(self, raw: bytes) -> tuple[SendBody, list[tuple[SentFile, bytes]]]:
        body, config = decode(SendBody, raw), self._config
        kept = read_files(body.files, most=config.max_files, max_bytes=config.max_file_bytes)
        return msgspec.structs.replace(body, files=tuple(file for file, _ in kept)), kept

    async def _keep(self, caller: Caller, file: SentFile, data: bytes) -> ShownFile:
        name = storable(file.name)
        kept = await self._context.storage.put_file(caller, data, media_type=file.media_type, name=name)
        # The same bytes are kept once, under the name that they had first.
        return msgspec.structs.replace(as_shown_file(kept), name=name)

    async def file(self, call: HttpCall) -> None:
        kept, data = await self._context.storage.get_file(
            call.caller, plain_id(call.scope["path_params"]["file"], "file")
        )
        headers = [*file_headers(kept), (b"content-length", str(len(data)).encode())]
        await call.send({"type": "http.response.start", "status": 200, "headers": headers})
        await call.send({"type": "http.response.body", "body": data})

    def _is_control(self, name: str | None) -> bool:
        command = None if name is None else self._context.find_command(name)
        return command is not None and command.control

    async def stop(self, call: HttpCall) -> None:
        """Stop the running and queued answers of a conversation."""
        body = decode(StopBody, await call.json_body(limit=FIELDS_BYTES, deadline=self._deadline))
        await self._let_in(call.caller)
        chat = await self._get_chat(call)
        item = to_stop(
            client_id(body.client_id),
            channel=self._name,
            caller=call.caller,
            chat=chat.id,
            now=self._context.now(),
        )
        await self._context.events.accept(item)
        await answer(call, {})

    async def question(self, call: HttpCall) -> None:
        approval = await self._context.approvals.get(call.caller, _approval_id(call))
        await answer(call, await self._render_question(call, approval))

    async def _render_question(self, call: HttpCall, approval: PendingApproval) -> dict[str, Any]:
        may_answer = await self._context.approvals.may_decide(call.caller, approval.approval_id)
        return {**_render_approval(approval, self._context.now()), "may_answer": may_answer}

    async def decide(self, call: HttpCall) -> None:
        """Decide a question in the form displayed to the visitor."""
        raw = await call.json_body(limit=6 * _MAX_REASON_LENGTH + FIELDS_BYTES, deadline=self._deadline)
        body = decode(DecideBody, raw)
        decision = await self._context.approvals.decide(
            call.caller,
            _approval_id(call),
            body.approved,
            digest=body.digest,
            reason=storable(body.reason)[:_MAX_REASON_LENGTH] or None,
        )
        approval = decision.approval
        shown = None if approval is None else await self._render_question(call, approval)
        await answer(call, {"outcome": decision.outcome, "question": shown})

    async def _get_chat(self, call: HttpCall) -> Chat:
        spot = build_message_ref(call)
        chat = (await self._mailbox.head(spot.visitor)).chat(spot.chat)
        if chat is None:
            raise NotFoundError(NO_CHAT, param="conversation")
        return chat


def _render_approval(approval: PendingApproval, now: float) -> dict[str, Any]:
    _, arguments = get_asked_call(approval.request)
    left = None if approval.expires_at is None else max(0.0, approval.expires_at - now)
    return {
        "approval_id": approval.approval_id,
        "tool": escape_line(approval.tool),
        "arguments": display_arguments(arguments),
        "fields": argument_fields(arguments),
        "digest": approval.digest,
        "status": approval.status,
        "reason": escape_text(approval.reason or ""),
        "seconds_left": left,
        **_people(approval),
        **_decision(approval),
    }


def _people(approval: PendingApproval) -> dict[str, Any]:
    """Return the requester and the approvers of a question that others decide."""
    terms, requester = approval.terms, approval.requester
    if terms is None or requester is None:
        return {}
    asker = approval.requester_name or build_unverified_name(requester.identity)
    people = list_awaited(terms)
    return {
        "asker": build_label(asker),
        "asked_for": person_shown(asker),
        "channel": escape_line(asker.channel),
        "waits_for": [build_label(person) for person in people],
        "people": [person_shown(person) for person in people],
        "votes": terms.votes,
    }


def _decision(approval: PendingApproval) -> dict[str, Any]:
    """Return the decider and time of a decision. Empty while the question is pending."""
    decider = find_decider(approval, None)
    if approval.status == "pending" or approval.decided_at is None:
        return {}
    return {"at": approval.decided_at, "decider": None if decider is None else person_shown(decider)}


def _approval_id(call: HttpCall) -> str:
    return plain_id(call.scope["path_params"]["approval_id"], "approval id")
