"""Ids that only the platform knows, of a host whose store other processes do not share."""

from frontdesk.abc.channel import ChannelContext
from frontdesk.data.identity import Caller
from frontdesk.data.request import ChannelRequest, ChannelSession
from frontdesk.errors import NotFoundError

_CONVERSATION = "conv_"


async def adopted(context: ChannelContext, caller: Caller, request: ChannelRequest) -> ChannelRequest:
    """Return a request whose unknown ids are keys of sessions of the caller's own.

    A key belongs to the person who uses it, so that the id of another person's response or conversation opens nothing.
    """
    conversation = None if request.session is None else request.session.openai_conversation_id
    previous = request.previous_run_id
    try:
        if conversation is not None and conversation.startswith(_CONVERSATION):
            await context.conversations.get(caller, conversation)
        elif previous is not None:
            await context.get_run(caller, previous)
    except NotFoundError:
        if conversation is not None:
            return request.replace(session=ChannelSession(key=conversation))
        details = {**request.details, "previous_response_id": previous}
        return request.replace(previous_run_id=None, session=ChannelSession(key=previous), details=details)
    return request
