"""What the design says of hooks, sessions and who may come in, tried on our code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, ContextProvider, FileHistoryProvider, Message

import frontdesk
from frontdesk import (
    AllowAll,
    Allowed,
    ApiKeyAuth,
    CallableAllowlist,
    Caller,
    ChannelIdentity,
    ChannelRequest,
    ChannelSession,
    Denied,
    Entra,
    IdentityLinker,
    InvalidRequestError,
    LinkRequired,
    NativeIdAllowlist,
    OneTimeCodeIdentityLinker,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.interfaces.linker import SupportsLinkRoutes
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import serving
from frontdesk_testing.internals import get_store
from tests.access import test_attributes_of_hooks as resolvers
from tests.docs.differences.host import check_missing, check_refused, host_with
from tests.scenarios import test_approvals_where_a_hook_decides as deciding
from tests.scenarios import test_own_history as own_history
from tests.scenarios.delivery import test_branches as branches
from tests.scenarios.delivery import test_presence as presence
from tests.scenarios.design import test_elsewhere as elsewhere
from tests.scenarios.messages.chat import open_chat

BOB = ChannelIdentity("responses", "bob")


def recite(messages: Sequence[Message]) -> str:
    return " / ".join(one.text for one in messages if one.role == "user")


def build_reciting(**settings: Any) -> Agent:
    return Agent(client=ScriptedChatClient(recite), name="Reciting", **settings)


async def the_whole_request() -> None:
    seen: list[Any] = []

    def hook(request: ChannelRequest, *, protocol_request: Any, **_: Any) -> ChannelRequest:
        seen.append(protocol_request)
        return request

    async with serving(host_with(channels=[InvocationsChannel(run_hook=hook)])) as client:
        await client.http.post("/invocations?a=b", json={"message": "hi"}, headers={"x-guest": "Ada"})
    (payload,) = seen
    assert dict(payload) == {"message": "hi"}
    assert payload["message"] == "hi"
    assert (payload.headers["x-guest"], payload.query_params["a"], payload.url.path) == ("Ada", "b", "/invocations")
    assert payload.request.method == "POST"


async def check_asked_again() -> None:
    await resolvers.test_the_owner_stayed_the_one_before_the_hook()
    await resolvers.test_who_is_refused_outright_reaches_no_hook()


async def for_its_request_alone() -> None:
    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(identity=BOB)

    host = host_with(channels=[ResponsesChannel(run_hook=hook)])
    async with serving(host) as client:
        run_id = (await client.http.post("/responses", json={"input": "hi"})).json()["id"]
        assert (await client.http.get(f"/responses/{run_id}")).status_code == 404
        assert (await host.get_continuation(run_id, identity=BOB)).result.text == "hi"


def _of_person(request: ChannelRequest, **_: Any) -> ChannelRequest:
    return request.replace(session=ChannelSession(isolation_key="person"))


def _person(_: ChannelIdentity) -> str:
    return "person"


async def one_conversation_by_a_hook() -> None:
    for hook, heard in ((None, "two"), (_of_person, "one / two")):
        door = InvocationsChannel(run_hook=hook)
        async with open_chat(build_reciting(), channels=[door], identity_resolver=_person) as chat:
            ann = await chat.platform.user("Ann")
            await chat.platform.say(ann, "one")
            assert await chat.wait_for_answers(ann.chat_id) == ["one"]
            answer = await chat.platform.http.post(f"{chat.base_url}/invocations", json={"message": "two"})
            assert answer.json()["text"] == heard


async def the_wire_names_no_owner() -> None:
    host = host_with()
    context: Any = host._get_context("invocations")
    caller = Caller(identity=ChannelIdentity("invocations", "ann"))
    request = ChannelRequest(channel="invocations", input="hi", session=ChannelSession(isolation_key="bob"))
    async with serving(host):
        with pytest.raises(InvalidRequestError):
            await context.run(request, caller)


async def an_answer_is_of_whom_it_is_for() -> None:
    await deciding.test_an_answer_to_responses_was_refused_to_whom_the_question_was_for("another identity")


async def one_mapping() -> None:
    seen: list[dict[str, Any]] = []

    class Bound(ContextProvider):
        def __init__(self) -> None:
            super().__init__("bound")

        def bind_request_context(self, **told: Any) -> Any:
            import contextlib

            seen.append(told)
            return contextlib.nullcontext()

    channel = InvocationsChannel(extra_fields="attributes")
    request = ChannelRequest(
        channel="invocations",
        input="hi",
        client_state={"a": 1},
        forwarded_props={"b": 2},
        attributes={"tenant": "ours"},
    )
    host = host_with(target=build_reciting(context_providers=[Bound()]), channels=[channel])
    async with serving(host) as client:
        await client.http.post("/invocations", json={"message": "hi", "tenant": "ours", "isolation": "mine"})
        context: Any = host._get_context("invocations")
        await context.run(request, Caller(identity=ChannelIdentity("invocations", "ann")))
    first, second = seen
    assert first["attributes"] == {"tenant": "ours", "isolation": "mine"}
    assert first["isolation"] != "mine"
    assert "tenant" not in first
    assert (second["client_state"], second["forwarded_props"]) == ({"a": 1}, {"b": 2})


async def no_names_of_people() -> None:
    async with open_chat(build_reciting()) as chat:
        ann = await chat.platform.user("Ann")
        await chat.platform.say(ann, "one")
        await chat.wait_for_answers(ann.chat_id)
        store = get_store(chat.host)
        record = await store.identities.find(ChannelIdentity("messages", ann.user_id))
        assert record is not None
        owner = record.isolation_key
        (run,) = [await store.runs.get(owner, row.run_id) for row in await store.outbox.find() if row.run_id]
        assert run is not None
        assert run.session_id is not None
        history = await store.sessions.history(owner, run.session_id)
    identity = history[0].additional_properties["hosting"]["identity"]
    assert identity == {"channel": "messages", "native_id": ann.user_id}


async def an_audit_log_still_writes(tmp_path: Path) -> None:
    for loads, kept in ((True, 0), (False, 1)):
        place = tmp_path / str(loads)
        provider = FileHistoryProvider(place, load_messages=loads)
        channel = ResponsesChannel()
        async with serving(
            host_with(target=build_reciting(context_providers=[provider]), channels=[channel])
        ) as client:
            answer = await client.http.post("/responses", json={"input": "hi", "store": False})
            assert answer.status_code == 200
        assert len(_files(place)) == kept


def _files(place: Path) -> list[Path]:
    return list(place.glob("*")) if place.exists() else []


async def a_copy_or_an_error(tmp_path: Path) -> None:
    await own_history.test_a_branch_started_empty(tmp_path / "files", "file", stream=False)
    await own_history.test_a_branch_of_which_the_provider_tells_nothing_started_empty()


async def where_it_reaches_them(tmp_path: Path) -> None:
    await elsewhere.test_active_is_a_value_and_a_person_who_never_left_is_answered_here(tmp_path)
    await presence.test_who_was_seen_too_long_ago_is_answered_where_they_asked()


async def but_for_workflows() -> None:
    await branches.test_a_person_had_to_wait_until_their_run_had_ended()
    await branches.test_a_workflow_is_refused_and_told_what_to_do()
    await branches.test_an_agent_that_keeps_its_conversations_is_refused()


def check_kept_apart(tmp_path: Path) -> None:
    provider = FileHistoryProvider(tmp_path)
    (warning,) = host_with(target=build_reciting(context_providers=[provider])).warnings
    assert "history provider of its own" in warning
    assert "not committed" in warning


HOOKS: dict[str, Any] = {
    "`protocol_request` is the payload": the_whole_request,
    "a resolver sees what a hook adds to the identity": check_asked_again,
    "a hook's identity counts everywhere": for_its_request_alone,
    "a call without a session joins the person's conversation": one_conversation_by_a_hook,
    "`ChannelSession(isolation_key=...)` on any request": the_wire_names_no_owner,
    "a hook's identity counts for approvals": an_answer_is_of_whom_it_is_for,
    "`bind_request_context(**attributes)`": one_mapping,
    "HTTP and chats share one session by default": one_conversation_by_a_hook,
    "stored questions have `identity.attributes`": no_names_of_people,
    "`store=false` with a history provider of the agent's own": an_audit_log_still_writes,
    "a branch with such a provider": a_copy_or_an_error,
    "`active` is where the person was last seen, then where it was asked, then all linked": where_it_reaches_them,
    "a run that is sent elsewhere leaves the conversation free": but_for_workflows,
    "what such a provider keeps is part of the turn": check_kept_apart,
}


async def nobody_decided() -> None:
    def abstain(_: Any) -> Any:
        return frontdesk.AllowlistDecision.ABSTAIN

    host = host_with(channels=[InvocationsChannel(allowlist=CallableAllowlist(abstain))])
    decision = await host.authorize(ChannelIdentity("invocations", "ann"))
    assert isinstance(decision, Denied)
    assert decision.reason_code == "allowlist_abstained"


async def none_is_the_channels_rule() -> None:
    """AUDIT 282."""
    host = host_with(channels=[InvocationsChannel(allowlist=NativeIdAllowlist(["bob"]))])
    ann = ChannelIdentity("invocations", "ann")
    assert isinstance(await host.authorize(ann, allowlist=None), Denied)
    assert isinstance(await host.authorize(ann, allowlist=AllowAll()), Allowed)


async def a_decision_begins_nothing() -> None:
    channels = [InvocationsChannel(require_link=True, auth=ApiKeyAuth({"ann": "the key of ann, long enough"}))]
    host = host_with(channels=channels, linker=OneTimeCodeIdentityLinker())
    async with serving(host):
        decision = await host.authorize(ChannelIdentity("invocations", "ann"))
    assert isinstance(decision, LinkRequired)
    assert decision.challenge is None


def the_calls_of_a_linker() -> None:
    assert not hasattr(IdentityLinker, "contribute")
    assert not hasattr(IdentityLinker, "is_linked")
    assert {"use", "begin", "complete", "resolve", "unlink"} <= set(dir(IdentityLinker))
    assert hasattr(SupportsLinkRoutes, "routes")


def no_certificate() -> None:
    make: Any = Entra
    check_refused(lambda: make(tenants=["t"], certificate="x"), TypeError, "certificate")


def no_approval_storage() -> None:
    check_missing("ApprovalStorage")
    check_refused(lambda: host_with(approval_storage=object()), TypeError, "approval_storage")
    assert get_store(host_with()).approvals is not None


ACCESS: dict[str, Any] = {
    "every allowlist abstains: allowed": nobody_decided,
    "`host.authorize(..., allowlist=None)` is the open rule": none_is_the_channels_rule,
    "`LinkRequired(challenge)`": a_decision_begins_nothing,
    "`IdentityLinker.contribute`, `is_linked`": the_calls_of_a_linker,
    "Entra with a certificate": no_certificate,
    "`ApprovalStorage`, a seam that an operator can replace": no_approval_storage,
}
