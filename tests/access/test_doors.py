"""The gate at work, behind real channels on a real server: who is not let in gets nothing done, at any door."""

from collections.abc import Sequence
from typing import Any

import pytest
from agent_framework import tool

from frontdesk import (
    ApiKeyAuth,
    AuthorizationContext,
    Channel,
    ChannelCommand,
    ChannelContext,
    ChannelContribution,
    ChannelIdentity,
    ChannelRequest,
    NativeIdAllowlist,
)
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import ForbiddenError, LinkRequiredError, UnauthenticatedError, UnsupportedError
from frontdesk.interfaces.access import AllowlistDecision
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller
from tests.access.door import FixedLinker, link
from tests.host.link_door import Call
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import InvocationsHost, open_client, until

ALICE = {"x-api-key": "the-key-of-alice"}
BOB = {"x-api-key": "the-key-of-bob-long"}
KEYS = ApiKeyAuth({"alice": "the-key-of-alice", "bob": "the-key-of-bob-long"})


class Ears:
    """A target that notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def hear(self, text: str) -> str:
        self.heard.append(text)
        return text


class Guests:
    """A list that can be changed while the host runs."""

    def __init__(self, *native_ids: str) -> None:
        self.native_ids = set(native_ids)
        self.asked: list[AuthorizationContext] = []

    def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        self.asked.append(context)
        listed = context.identity.native_id in self.native_ids
        return AllowlistDecision.ALLOW if listed else AllowlistDecision.DENY


class ScriptedChat(Channel):
    """A message channel without a platform: the test says what comes in."""

    session_family = "host_tracked"
    requires_auth_when_public = False
    context: ChannelContext

    def __init__(self, name: str = "chat", **options: Any) -> None:
        self.name, self.path = name, f"/{name}"
        self.said: list[str] = []
        for option, value in options.items():
            setattr(self, option, value)

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        async def new(command: Any) -> None:
            self.said.append("new")

        self.context = context
        return ChannelContribution(commands=[ChannelCommand(name="new", description="", handler=new)])

    def by(self, native_id: str, **options: Any) -> Caller:
        return Caller(identity=ChannelIdentity(channel=self.name, native_id=native_id), **options)

    async def hears(self, native_id: str, text: str, event_id: str, **options: Any) -> None:
        request = ChannelRequest(channel=self.name, input=text, conversation_id="room", **options)
        item = InboxItem(
            channel=self.name,
            event_id=event_id,
            conversation_id="room",
            caller=self.by(native_id),
            request=request,
            received_at=1.0,
        )
        await self.context.events.accept(item)


async def wait_for_events(desk: InvocationsHost, count: int) -> None:
    """Waits until that many events are done."""
    await until(lambda: sum(name == "finish" for name, _ in desk.ledger.writes) == count)


CALLS: list[tuple[str, str, Any]] = [
    ("POST", "/invocations", {"message": "hi"}),
    ("POST", "/invocations", {"message": "hi", "stream": True}),
    ("POST", "/invocations", {"message": "hi", "background": True}),
    ("POST", "/invocations", {"approval": {"id": "apr_1", "approved": True}}),
    ("GET", "/invocations/run_1", None),
    ("GET", "/invocations/run_1?starting_after=0&stream=true", None),
    ("POST", "/invocations/run_1/cancel", {}),
    ("POST", "/responses", {"input": "hi"}),
    ("POST", "/responses", {"input": "hi", "stream": True}),
    ("POST", "/responses", {"input": "hi", "background": True}),
    ("POST", "/responses/compact", {"model": "x", "input": "hi"}),
    ("GET", "/responses/resp_1", None),
    ("DELETE", "/responses/resp_1", None),
    ("POST", "/responses/resp_1/cancel", {}),
    ("GET", "/responses/resp_1/input_items", None),
    ("POST", "/conversations", {}),
    ("GET", "/conversations/conv_1", None),
    ("POST", "/conversations/conv_1", {"metadata": {}}),
    ("DELETE", "/conversations/conv_1", None),
    ("GET", "/conversations/conv_1/items", None),
    ("POST", "/conversations/conv_1/items", {"items": [{"role": "user", "content": "hi"}]}),
]


def three(**options: Any) -> list[Any]:
    return [
        InvocationsChannel(auth=KEYS, **options),
        ResponsesChannel(auth=KEYS, **options),
        ConversationsChannel(auth=KEYS),
    ]


@pytest.mark.parametrize("inherited", [False, True])
async def test_who_is_denied_gets_nothing_done_on_any_route(inherited: bool) -> None:
    ears, guests = Ears(), Guests("alice")
    options: dict[str, Any] = {"default_allowlist": guests} if inherited else {}
    channels = three() if inherited else three(allowlist=guests)
    async with open_client(ears.hear, channels=channels, **options) as desk:
        for method, path, body in CALLS:
            response = await desk.client.request(method, path, json=body, headers=BOB)
            assert (response.status_code, response.json()["error"]["code"]) == (403, "denied"), (method, path)
            assert "allowlist" not in response.text
        assert not ears.heard
        assert desk.untouched()
        assert not await desk.ledger.identities.of_owner("")
        assert (await desk.ask(headers=ALICE)).status_code == 200
        assert len(guests.asked) == len(CALLS) + 1


async def test_who_must_link_is_told_so_on_any_route() -> None:
    ears = Ears()
    linker = FixedLinker(link(ChannelIdentity(channel="invocations", native_id="alice")))
    async with open_client(ears.hear, channels=three(require_link=True), linker=linker) as desk:
        for method, path, body in CALLS:
            response = await desk.client.request(method, path, json=body, headers=BOB)
            assert (response.status_code, response.json()["error"]["code"]) == (403, "link_required"), (method, path)
        assert not ears.heard
        assert desk.untouched()
        assert not linker.begun
        assert (await desk.ask("hi", headers=ALICE)).status_code == 200


async def test_each_door_has_its_own_rule() -> None:
    ears = Ears()
    channels = [
        InvocationsChannel(auth=KEYS, allowlist=None),
        ResponsesChannel(auth=KEYS),
        InvocationsChannel(name="second", path="/second", auth=KEYS, allowlist=NativeIdAllowlist(["bob"])),
    ]
    async with open_client(ears.hear, channels=channels, default_allowlist=NativeIdAllowlist(["alice"])) as desk:
        doors: Sequence[tuple[str, Any]] = [
            ("/invocations", {"message": "hi"}),
            ("/responses", {"input": "hi"}),
            ("/second", {"message": "hi"}),
        ]
        for headers, expected in ((ALICE, [200, 200, 403]), (BOB, [200, 403, 200])):
            answers = [await desk.client.post(path, json=body, headers=headers) for path, body in doors]
            assert [one.status_code for one in answers] == expected


async def test_someone_who_is_taken_off_the_list_keeps_nothing() -> None:
    guests = Guests("alice")
    ears = Ears()
    async with open_client(ears.hear, InvocationsChannel(auth=KEYS, allowlist=guests)) as desk:
        run = (await desk.ask(headers=ALICE)).json()
        guests.native_ids.clear()
        for response in (await desk.get(run["id"], headers=ALICE), await desk.cancel(run["id"], headers=ALICE)):
            assert response.status_code == 403
        guests.native_ids.add("alice")
        assert (await desk.get(run["id"], headers=ALICE)).json() == run


async def test_an_approval_of_someone_who_is_denied_by_then_runs_nothing() -> None:
    ran: list[int] = []

    async def pay(amount: int) -> str:
        ran.append(amount)
        return "paid"

    guests = Guests("alice")
    agent = build_scripted([[call("pay", amount=5)], ["done"]], tools=[tool(pay, approval_mode="always_require")])
    async with open_client(agent, InvocationsChannel(auth=KEYS, allowlist=guests)) as desk:
        run = (await desk.ask("pay", session_id="s", headers=ALICE)).json()
        answer = {"approval": {"id": run["approvals"][0]["id"], "approved": True}}
        guests.native_ids.clear()
        refused = await desk.post(answer, headers=ALICE)
        assert (refused.status_code, ran) == (403, [])
        guests.native_ids.add("alice")
        assert (await desk.post(answer, headers=ALICE)).status_code == 200
        assert ran == [5]


async def test_in_a_group_each_message_is_asked_about_by_its_sender() -> None:
    ears, guests = Ears(), Guests("alice", "room")
    chat = ScriptedChat(allowlist=guests, conversation_scope="per_conversation", accept_in_group="all")
    async with open_client(ears.hear, channels=[chat]) as desk:
        said = [("alice", "one"), ("bob", "two"), ("alice", "three"), ("mallory", "four")]
        for number, (who, text) in enumerate(said):
            await chat.hears(who, text, f"e{number}", group=True)
        await wait_for_events(desk, 4)
        assert ears.heard == ["one", "three"]
        assert [one.identity.native_id for one in guests.asked] == [who for who, _ in said]


async def test_a_permission_for_the_direct_chat_is_one_for_the_person_and_not_for_the_room() -> None:
    ears = Ears()
    chat = ScriptedChat(allowlist=NativeIdAllowlist(["alice"], channel="chat"))
    async with open_client(ears.hear, channels=[chat]) as desk:
        await chat.hears("alice", "direct", "e1")
        await chat.hears("bob", "in the room that alice opened", "e2", group=True)
        await chat.hears("room", "as the room itself", "e3", group=True)
        await wait_for_events(desk, 3)
        assert ears.heard == ["direct"]


OF_LINKING = ("link", "connect", "unlink", "whoami")


async def test_commands_are_asked_about_and_those_of_linking_pass_who_must_link() -> None:
    linker = FixedLinker()
    chat = ScriptedChat(allowlist=NativeIdAllowlist(["alice"]), require_link=True)
    async with open_client(Ears().hear, channels=[chat], linker=linker):
        with pytest.raises(LinkRequiredError):
            await chat.context.run_command("new", Call(chat.by("alice"), ""))
        for name in OF_LINKING:
            command = Call(chat.by("alice"), "")
            assert await chat.context.run_command(name, command)
            assert len(command.replies) == 1
        assert [one.native_id for one in linker.begun] == ["alice", "alice"]
        for name in ("new", *OF_LINKING, "no such command"):
            command = Call(chat.by("bob"), "")
            with pytest.raises(ForbiddenError) as caught:
                await chat.context.run_command(name, command)
            assert (caught.value.code, command.replies) == ("denied", [])
        assert not chat.said
        alice = chat.by("alice")
        linker.links[alice.identity.key] = link(alice.identity)
        assert await chat.context.run_command("new", Call(alice, ""))
        assert chat.said == ["new"]


async def test_a_channels_own_command_of_such_a_name_does_not_pass_who_must_link() -> None:
    chat = ScriptedChat(require_link=True, link_commands=dict.fromkeys(OF_LINKING))
    async with open_client(Ears().hear, channels=[chat], linker=FixedLinker()):
        context: Any = chat.context

        async def never(command: Any) -> None:
            pytest.fail("it must not run")

        context.add_commands([ChannelCommand(name="whoami", description="", handler=never)])
        with pytest.raises(LinkRequiredError):
            await context.run_command("whoami", Call(chat.by("alice"), ""))


async def test_a_link_is_begun_for_who_must_link_and_not_for_who_is_denied() -> None:
    linker = FixedLinker()
    strict = ScriptedChat("strict", allowlist=NativeIdAllowlist(["alice"]), require_link=True)
    async with open_client(Ears().hear, channels=[strict], linker=linker) as desk:
        challenge = await strict.context.links.begin(strict.by("alice"))
        assert challenge.identity.native_id == "alice"
        with pytest.raises(ForbiddenError) as caught:
            await strict.context.links.begin(strict.by("bob"))
        assert caught.value.code == "denied"
        with pytest.raises(UnauthenticatedError):
            await strict.context.links.begin(strict.by("alice", anonymous=True))
        assert [one.native_id for one in linker.begun] == ["alice"]
        assert desk.untouched()


async def test_without_a_linker_nothing_can_be_begun() -> None:
    chat = ScriptedChat()
    async with open_client(Ears().hear, channels=[chat]):
        with pytest.raises(UnsupportedError):
            await chat.context.links.begin(chat.by("alice"))


async def test_every_call_of_a_context_is_asked_about() -> None:
    chat = ScriptedChat(allowlist=Guests())
    async with open_client(Ears().hear, channels=[chat]) as desk:
        bob, context, conversations = chat.by("bob"), chat.context, chat.context.conversations
        request = ChannelRequest(channel="chat", input="hi")

        calls = [
            context.allow(bob),
            context.run(request, bob),
            context.stream(request.replace(stream=True), bob),
            context.submit(request, bob),
            conversations.compact(request, bob),
            context.runs.get(bob, "run_1"),
            context.runs.cancel(bob, "run_1"),
            context.runs.delete(bob, "run_1"),
            context.runs.follow(bob, "run_1"),
            conversations.save(bob, None, {}),
            conversations.save(bob, "conv_1", {}),
            conversations.get(bob, "conv_1"),
            conversations.delete(bob, "conv_1"),
            conversations.add_items(bob, "conv_1", []),
            conversations.list_items(bob, "conv_1"),
            conversations.get_item(bob, "conv_1", "item_1"),
            conversations.delete_item(bob, "conv_1", "item_1"),
            context.approvals.pending(bob),
            context.approvals.build_request(bob, [ApprovalAnswer(approval_id="apr_1", approved=True)]),
            context.links.begin(bob),
            context.sessions.reset(bob),
            context.run_command("new", Call(bob, "")),
        ]
        for one in calls:
            with pytest.raises(ForbiddenError) as caught:
                await one
            assert caught.value.code == "denied"
        assert desk.untouched()
        assert not chat.said
