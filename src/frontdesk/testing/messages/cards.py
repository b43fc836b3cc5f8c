"""Decides questions while the platform waits for the response to a click, and shows there what was decided."""

from frontdesk.abc.channel import ChannelContext
from frontdesk.data.approval import Decision
from frontdesk.data.delivery import InboxItem
from frontdesk.errors import RequestError
from frontdesk.kit.chat.wording import Wording
from frontdesk.testing.messages.render import find_question, name_of, read_button
from frontdesk.testing.messages.replies import wording_for
from frontdesk.testing.messages.wire import Shown


async def decide_click(context: ChannelContext, item: InboxItem) -> Shown | None:
    """Decide the question of a button, and return what is shown; `None` if the button answers no question.

    If the platform sends the click again, because it got no response, the decision is there, and shown again.
    """
    name, approved = read_button(item.request.attributes["data"])
    if not name:
        return None
    wording = wording_for(item, context.texts)
    try:
        question = find_question(name, await context.pending_approvals(item.caller))
        decision = await context.decide(item.caller, name if question is None else question.approval_id, approved)
    except RequestError as error:
        if error.status == 429 or error.status >= 500:
            # The platform sends it again.
            raise
        return Shown(notice=wording.answer_error(error))
    return shown(decision, name_of(item.caller.identity), wording)


def shown(decision: Decision, who: str, wording: Wording) -> Shown:
    """Return what the person who has pressed a button is shown: the decision, or why there is none. Pure."""
    approval, notice = decision.approval, wording.undecided(decision)
    if notice is not None or approval is None:
        # The question may still wait for somebody else, so that its message stays.
        return Shown(notice=notice or "")
    return Shown(card=wording.decided(approval, who))
