"""The calls of a context under their old names: each warns, and is the call of its group."""

import warnings
from typing import Any

import pytest

import frontdesk
from frontdesk.errors import NotFoundError
from frontdesk.interfaces.channel import Channel, ChannelContext
from frontdesk.interfaces.context_groups import DeprecatedCalls
from frontdesk.linkers import oauth
from frontdesk.models.run import RunRecord
from tests.host.link_door import Loud, open_host

NEW_NAMES = {
    "get_run": "runs.get",
    "cancel_run": "runs.cancel",
    "delete_run": "runs.delete",
    "follow": "runs.follow",
    "cancel_background_runs": "runs.cancel_background",
    "pending_approvals": "approvals.pending",
    "waiting_approvals": "approvals.waiting",
    "get_approval": "approvals.get",
    "decide": "approvals.decide",
    "may_decide": "approvals.may_decide",
    "vote": "approvals.vote",
    "approval_request": "approvals.build_request",
    "begin_link": "links.begin",
    "complete_link": "links.complete",
    "unlink": "links.unlink",
    "whoami": "links.whoami",
    "link_status": "links.status",
    "home_of": "links.home",
    "principal_channel": "links.principal_channel",
    "reset_session": "sessions.reset",
    "list_sessions": "sessions.list",
    "resume_session": "sessions.resume",
    "name_session": "sessions.rename",
    "track_session": "sessions.track",
    "transcript": "sessions.transcript",
    "accept": "events.accept",
    "accept_and_wait": "events.accept_and_wait",
    "reply": "events.reply",
    "cancel_turns": "events.cancel_turns",
    "is_finished": "events.is_finished",
    "seal_reply_token": "events.seal_reply_token",
    "open_reply_token": "events.open_reply_token",
    "settle_delivery": "events.settle_delivery",
    "end_deliveries": "events.end_deliveries",
    "alias_conversation": "events.alias_conversation",
    "channel_storage": "storage.values",
    "leadership": "storage.leadership",
    "put_file": "storage.put_file",
    "get_file": "storage.get_file",
    "keep_reference": "storage.put_reference",
    "get_reference": "storage.get_reference",
}


def new_call(context: ChannelContext, old: str) -> Any:
    group, name = NEW_NAMES[old].split(".")
    return getattr(getattr(context, group), name)


def test_every_call_that_moved_has_its_old_name() -> None:
    assert {name for name in vars(DeprecatedCalls) if not name.startswith("__")} == set(NEW_NAMES)


@pytest.mark.parametrize("old", NEW_NAMES)
async def test_an_old_name_warns_and_is_the_call_of_its_group(old: str) -> None:
    channel = Loud("chat")
    async with open_host([channel]):
        with pytest.warns(DeprecationWarning, match=old) as warned:
            call = getattr(channel.context, old)
        assert call == new_call(channel.context, old)
        (warning,) = warned
        assert str(warning.message) == f"context.{old} is deprecated. Use context.{NEW_NAMES[old]}."
        assert warning.filename == __file__


def test_an_old_name_of_the_class_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        assert (ChannelContext.get_run.group, ChannelContext.get_run.new_name) == ("runs", "get")


async def test_old_calls_return_what_the_new_ones_return() -> None:
    channel = Loud("chat")
    async with open_host([channel]):
        context, ann = channel.context, channel.by("ann")
        run_id = await channel.asks("ann", "hi")
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            run = await context.runs.get(ann, run_id)
            sessions = await context.sessions.list(ann)
            page = await context.sessions.transcript(ann)
            person = await context.links.whoami(ann)
            await context.storage.put_reference(ann, {"url": "u"})
        with pytest.warns(DeprecationWarning, match="context.get_run is"):
            old_run: RunRecord = await context.get_run(ann, run_id)
        assert (old_run.run_id, old_run.result.text) == (run_id, run.result.text)
        with pytest.warns(DeprecationWarning, match="context.list_sessions is"):
            assert await context.list_sessions(ann, limit=20) == sessions
        with pytest.warns(DeprecationWarning, match="context.transcript is"):
            assert len((await context.transcript(ann)).messages) == len(page.messages) == 2
        with pytest.warns(DeprecationWarning, match="context.whoami is"):
            assert await context.whoami(ann) == person
        with pytest.warns(DeprecationWarning, match="context.get_reference is"):
            assert await context.get_reference(ann.identity) == {"url": "u"}
        with pytest.warns(DeprecationWarning, match="context.put_file is"):
            file = await context.put_file(ann, b"cat", media_type="image/png")
        assert await context.storage.get_file(ann, file.file_id) == (file, b"cat")
        with pytest.warns(DeprecationWarning, match="context.delete_run is"):
            await context.delete_run(ann, run_id)
        with pytest.raises(NotFoundError):
            await context.runs.get(ann, run_id)


def test_an_old_public_name_is_the_new_one_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="frontdesk.Limits is deprecated. Use frontdesk.HttpLimits."):
        old = frontdesk.Limits  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
    assert old is frontdesk.HttpLimits


def test_an_old_linker_name_is_the_new_one_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="Use get_subject"):
        old = oauth.subject_of  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
    assert old is oauth.get_subject


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tells_sessions", "announces_sessions"),
        ("takes_http", "requires_auth_when_public"),
        ("one_place_per_person", "shares_inbox_per_person"),
        ("tells_callers_apart", "identifies_anonymous_callers"),
    ],
)
def test_an_old_attribute_of_a_channel_sets_the_new_one_with_a_warning(old: str, new: str) -> None:
    value = not getattr(Channel, new)
    with pytest.warns(DeprecationWarning, match=f"Mine.{old} is deprecated. Set {new}."):
        kind = type("Mine", (Loud,), {old: value})
    assert getattr(kind, new) is value
