"""Decides questions while the platform waits for the response to a click, and shows there what was decided."""

from frontdesk.abc.channel import ChannelContext
from frontdesk.data.approval import Decision
from frontdesk.data.delivery import InboxItem
from frontdesk.errors import NotFoundError, RequestError
from frontdesk.testing.messages.render import decided, find_question, name_of, read_button
from frontdesk.testing.messages.replies import NOT_YOURS
from frontdesk.testing.messages.wire import Shown

_CHANGED = "The call is no longer the one that was asked about. Ask again."
_NEEDS_MORE = "Your answer was noted. Others have to agree."


async def decide_click(context: ChannelContext, item: InboxItem) -> Shown | None:
    """Decide the question of a button, and return what is shown; `None` if the button answers no question.

    If the platform sends the click again, because it got no response, the decision is there, and shown again.
    """
    name, approved = read_button(item.request.attributes["data"])
    if not name:
        return None
    try:
        question = find_question(name, await context.pending_approvals(item.caller))
        decision = await context.decide(item.caller, name if question is None else question.approval_id, approved)
    except NotFoundError:
        return Shown(notice=NOT_YOURS)
    except RequestError as error:
        if error.status == 429 or error.status >= 500:
            # The platform sends it again.
            raise
        return Shown(notice=error.message)
    return shown(decision, name_of(item.caller.identity))


def shown(decision: Decision, who: str) -> Shown:
    """Return what the person who has pressed a button is shown: the decision, or why there is none. Pure."""
    approval = decision.approval
    if decision.outcome == "not_yours" or approval is None:
        # The question still waits for somebody else, so that its message stays.
        return Shown(notice=NOT_YOURS)
    if decision.outcome == "changed":
        return Shown(notice=_CHANGED)
    if decision.outcome == "needs_more":
        return Shown(notice=_NEEDS_MORE)
    # Nobody has decided what has expired or was given up.
    return Shown(card=decided(approval, "" if approval.status == "cancelled" else who))
