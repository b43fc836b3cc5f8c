"""Processes queued events: commands, buttons and files, and the replies if there is no answer."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec
from agent_framework import Content, Message

from frontdesk.chat.commands import parse_locale
from frontdesk.chat.i18n.wording import Wording
from frontdesk.chat.inbound import FILES, GREETING, UNSUPPORTED
from frontdesk.chat.media import FetchFile, MediaLimits, fetch_contents
from frontdesk.chat.messages import Card, InboundFile
from frontdesk.chat.questions import build_card, find_question, read_button, read_choice
from frontdesk.chat.session_commands import CommandCall
from frontdesk.errors import LinkRequiredError, NotFoundError, RequestError
from frontdesk.framework.workflow_requests import CHOICE, QUESTION
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.interfaces.context import BuiltInTexts
from frontdesk.models.approval import ApprovalAnswer, Decision, PendingApproval
from frontdesk.models.delivery import InboxItem
from frontdesk.models.link import LinkChallenge
from frontdesk.models.reply import Reply
from frontdesk.models.request import ChannelRequest


class Replies:
    """Processes events one by one."""

    def __init__(self, context: ChannelContext, fetch: FetchFile | None, limits: MediaLimits) -> None:
        self._context = context
        self._fetch = fetch
        self._limits = limits

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        """Return the request of an event for the target, or None if the event is done."""
        request = item.request
        if request.operation in ("message", "message.create"):
            if UNSUPPORTED in request.attributes:
                return await self._refuse_content(item)
            return await self._with_files(request) if FILES in request.attributes else request
        if request.operation == "approval":
            return await self._build_click_request(item)
        # A command may reply more than once, and each reply is a message of its own.
        count = 0

        async def reply(said: Reply | str) -> None:
            nonlocal count
            count += 1
            await self._context.events.reply(item, said, number=count)

        call = CommandCall(item, self._context, reply)
        if not await self._context.run_command(call.name, call) and request.attributes["named"]:
            locale = parse_locale(request, item.caller.identity)
            await reply(self._context.texts.say("command.unknown", locale, name=call.name))
        return None

    async def _refuse_content(self, item: InboxItem) -> None:
        """Reply that the channel does not support this kind of message. The target never receives it."""
        locale = parse_locale(item.request, item.caller.identity)
        await self._context.events.reply(item, self._context.texts.say("message.unsupported", locale))

    async def _with_files(self, request: ChannelRequest) -> ChannelRequest:
        """Fetch the files of a message whose sender has been admitted."""
        if self._fetch is None:
            return request
        files = msgspec.convert(request.attributes[FILES], tuple[InboundFile, ...])
        contents = await fetch_contents(files, self._fetch, self._limits)
        said = request.input
        if not isinstance(said, Message):
            said = Message("user", [Content.from_text(said)] if said else [])
        own = [content for content in said.contents if content.type != "text" or content.text]
        return request.replace(input=Message("user", [*own, *contents], author_name=said.author_name))

    async def _build_click_request(self, item: InboxItem) -> ChannelRequest | None:
        """Build the request of a button click, which carries only the short name of its question.

        A question with other approvers is decided immediately, because the click is not a turn of the user.
        """
        choice = read_choice(item.request.attributes["data"])
        if choice is not None:
            return item.request.replace(attributes={QUESTION: choice[0], CHOICE: choice[1]})
        name, approved = read_button(item.request.attributes["data"])
        decision = await self._context.approvals.vote(item.caller, name, approved)
        if decision is not None:
            to = "only_me" if "callback_id" in item.request.attributes else "here"
            await self._context.events.reply(item, Reply(self._describe_vote(item, decision), to=to))
            return None
        answer = ApprovalAnswer(approval_id=name, approved=approved)
        request = await self._context.approvals.build_request(item.caller, [answer])
        there = item.request
        return request.replace(conversation_id=item.conversation_id, group=there.group, reference=there.reference)

    def _describe_vote(self, item: InboxItem, decision: Decision) -> str:
        """Return the reply to a vote. If the event is processed again, the decision already exists."""
        wording, approval = build_wording(item, self._context.texts), decision.approval
        notice = wording.undecided(decision)
        by = item.caller.identity if decision.outcome == "recorded" else None
        return notice or ("" if approval is None else wording.decided(approval, by))

    async def settle(
        self, answers: Sequence[ApprovalAnswer], waiting: Sequence[PendingApproval]
    ) -> Sequence[ApprovalAnswer]:
        """Match the questions of buttons with the pending approvals."""
        settled: list[ApprovalAnswer] = []
        for answer in answers:
            question = find_question(answer.approval_id, waiting)
            if question is None:
                raise NotFoundError
            settled.append(answer.replace(approval_id=question.approval_id))
        return settled

    async def _challenge(self, item: InboxItem, error: LinkRequiredError, wording: Wording) -> str:
        try:
            return challenge_text(await self._context.links.begin(item.caller))
        except RequestError as failure:
            # For example of a person who got too many challenges: no answer at all would be worse.
            return f"{wording.error(error)} {wording.error(failure)}"

    async def refuse(self, item: InboxItem, error: RequestError) -> Sequence[Reply]:
        """Return the reason why there is no answer: a short one in a group, more detail in the direct chat."""
        request, wording = item.request, build_wording(item, self._context.texts)
        if GREETING in request.attributes:
            # Nobody has asked for anything.
            return []
        if request.operation == "approval":
            to = "only_me" if "callback_id" in request.attributes else "here"
            return [Reply(wording.answer_error(error), to=to)]
        here, direct = wording.refusal(error, group=request.group)
        if isinstance(error, LinkRequiredError):
            challenge = await self._challenge(item, error, wording)
            here, direct = (here, challenge) if request.group else (challenge, "")
        return [Reply(here), *([Reply(direct, to="direct")] if direct else [])]


def is_choice_click(item: InboxItem) -> bool:
    """Return True if an event is a click on a workflow choice, which the platform expects to be answered."""
    request = item.request
    if request.operation != "approval" or not request.attributes.get("callback_id"):
        return False
    return read_choice(request.attributes["data"]) is not None


def build_wording(item: InboxItem, texts: BuiltInTexts) -> Wording:
    return Wording(texts, parse_locale(item.request, item.caller.identity))


def confirmation(item: InboxItem, approval: PendingApproval, wording: Wording) -> Sequence[Reply]:
    """Return the reply to the user whose answer has decided a question.

    A delivery of the host updates the message of the question itself. For questions of an earlier version, the host
    does not have the location of that message.
    """
    answered = item.request.attributes
    text = wording.decided(approval, item.caller.identity)
    if "callback_id" not in answered:
        return [Reply(text)] if "data" in answered else []
    pop_up = Reply(text, to="only_me")
    if approval.target_request_id is not None or not answered["message_id"]:
        return [pop_up]
    return [pop_up, Reply(text, replaces=answered["message_id"])]


async def decide_click(context: ChannelContext, item: InboxItem, limit: int) -> Card | None:
    """Decide the question of a button and return the card to show, or None if the button answers no question.

    If the platform repeats the click because it got no response, the existing decision is shown again.
    """
    name, approved = read_button(item.request.attributes["data"])
    if not name:
        return None
    wording = build_wording(item, context.texts)
    try:
        question = None
        with suppress(NotFoundError):
            # An approver may never have been here before.
            question = find_question(name, await context.approvals.pending(item.caller))
        decision = await context.approvals.decide(
            item.caller, name if question is None else question.approval_id, approved
        )
    except RequestError as error:
        if error.status == 429 or error.status >= 500:
            # The platform sends it again.
            raise
        return Card(notice=wording.answer_error(error))
    return build_card(decision, item.caller.identity, wording, limit)


def challenge_text(challenge: LinkChallenge) -> str:
    return "\n".join(filter(None, (challenge.instructions, challenge.url)))
