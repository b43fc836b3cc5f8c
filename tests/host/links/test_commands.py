"""`link`, `connect`, `unlink` and `whoami`: on message channels of a host with a linker, and only in private."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from frontdesk import AgentFrameworkHost, ChannelCommand
from frontdesk.access.allowlists import NativeIdAllowlist
from frontdesk.access.policy import DenyAllLinks
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import ChannelConfigurationError, ForbiddenError, NotFoundError, UnsupportedError
from frontdesk.interfaces.linker import ReadsClaims, SupportsLinkRoutes
from frontdesk.linkers.one_time_code import OneTimeCodeIdentityLinker
from frontdesk.models.link import LinkProof
from frontdesk.models.request import ChannelRequest
from frontdesk_testing import EchoAgent
from frontdesk_testing.internals import get_components, get_store
from tests.host.link_door import Loud, Mute, code_in, open_host


async def agree(blue: Mute, code: str) -> None:
    """Ann2 enters a code, and says that whoever issued it is her."""
    assert "If that is you, answer /link confirm" in str(await blue.says("ann2", f"/link {code}"))
    assert "Now go back to" in str(await blue.says("ann2", "/link confirm"))


async def link(red: Mute, blue: Mute) -> None:
    """Ann on red, who is ann2 on blue, links the two."""
    code = code_in(await red.says("ann", "/link"))
    await agree(blue, code)
    for _ in range(2):
        # Where she could not be told who it is, the first word only shows it.
        done = await red.says("ann", "/link confirm")
        if done == "Done: your accounts share one conversation now.":
            return
    raise AssertionError(done)


@pytest.mark.parametrize("kinds", [(Loud, Loud), (Mute, Mute), (Loud, Mute), (Mute, Loud)])
async def test_two_channels_are_linked_and_separated(kinds: tuple[type[Mute], type[Mute]]) -> None:
    red, blue = kinds[0]("red"), kinds[1]("blue")
    async with open_host([red, blue]) as host:
        assert await red.says("ann", "/whoami") == "You are “Ann” (id ann) on red. Not linked."
        await link(red, blue)
        assert await red.says("ann", "/whoami") == "You are “Ann” (id ann) on red. Linked with blue."
        assert await blue.says("ann2", "/whoami") == "You are “Ann2” (id ann2) on blue. Linked with red."
        for channel, name in ((red, "ann"), (blue, "ann2")):
            await channel.asks(name, "hello")
        target: Any = host._target.native
        assert [[one.text for one in seen if one.role == "user"] for seen in target.seen][-1] == ["hello", "hello"]
        parted = "This account is no longer linked. It has a conversation of its own again."
        assert await blue.says("ann2", "/unlink") == parted
        assert await blue.says("ann2", "/unlink") == "This account is not linked."
        assert await red.says("ann", "/whoami") == "You are “Ann” (id ann) on red. Not linked."


async def test_both_channels_are_told() -> None:
    red, blue = Loud("red"), Loud("blue")
    async with open_host([red, blue]):
        await link(red, blue)
        await blue.says("ann2", "/unlink")
        told = await red.hears("ann", 2)
        assert told[1:] == ["“Ann2” (id ann2) on blue is no longer linked with this account."]
        assert await blue.hears("ann2", 1) == ["This account is now linked with “Ann” (id ann) on red."]


async def test_connect_is_another_word_for_link() -> None:
    red, blue = Loud("red"), Loud("blue")
    async with open_host([red, blue]):
        code = code_in(await red.says("ann", "/connect"))
        await blue.says("ann2", f"/connect {code}")
        await blue.says("ann2", "/connect confirm")
        assert await red.says("ann", "/connect reject") == "Nothing was linked."


async def test_in_a_group_the_code_goes_to_the_direct_chat() -> None:
    red, blue = Loud("red"), Loud("blue")
    async with open_host([red, blue]):
        here = await red.says("ann", "/link", group=True)
        assert here == "I have answered you in our direct chat."
        code = code_in(red.list_heard("ann")[0])
        assert await blue.says("ann2", f"/link {code}", group=True) == here
        assert blue.list_heard("ann2")[0].startswith("This code is from “Ann” (id ann) on red.")
        assert await blue.says("ann2", "/link confirm", group=True) == here
        assert await red.says("ann", "/link confirm", group=True) == here
        assert red.list_heard("ann")[-1] == "Done: your accounts share one conversation now."
        for words in ("/whoami", "/unlink"):
            assert await red.says("ann", words, group=True) == here


async def test_in_a_group_nothing_happens_where_nobody_can_be_told() -> None:
    mute, broken = Mute("mute"), Loud("broken", broken=RuntimeError("no such chat"))
    async with open_host([mute, broken]) as host:
        await link(mute, broken)
        for words in ("/link", "/unlink", "/whoami", "/link confirm"):
            assert await mute.says("ann", words, group=True) == "Please ask me that in a direct chat."
        assert await broken.says("bob", "/link", group=True) == "Please ask me that in a direct chat."
        assert await get_store(host).identities.link(mute.by("ann").identity) is not None


async def test_commands_are_renamed_and_hidden_per_channel() -> None:
    red = Loud("red", link_commands={"link": "verbinden", "connect": None, "whoami": "wer"})
    blue = Loud("blue")
    async with open_host([red, blue]):
        assert [one.name for one in red.context.commands()] == ["verbinden", "unlink", "wer"]
        assert [(one.name, one.expose_in_ui) for one in blue.context.commands()] == [
            ("link", True),
            ("connect", False),
            ("unlink", True),
            ("whoami", True),
        ]
        assert [await red.says("ann", words) for words in ("/link", "/connect", "/whoami")] == [None] * 3
        code = code_in(await red.says("ann", "/verbinden"))
        await agree(blue, code)
        # People are told the word that they have to use.
        assert "answer /verbinden confirm" in red.list_heard("ann")[0]


async def test_only_message_channels_of_a_host_with_a_linker_have_them() -> None:
    red = Loud("red")
    async with open_host([red], linker=None):
        assert list(red.context.commands()) == []
        with pytest.raises(UnsupportedError):
            await red.context.links.whoami(red.by("ann"))
    http = Loud("http", session_family="caller_supplied")
    async with open_host([http, red]):
        assert list(http.context.commands()) == []


@pytest.mark.parametrize(
    ("channel", "options", "finding"),
    [
        (Loud("red", link_commands={"lnk": "x"}), {}, "link_commands: 'lnk' is none of link, connect, unlink, whoami"),
        (
            Loud("red", link_commands={"link": "two words"}),
            {},
            "link_commands: 'two words' is no name of a command",
        ),
        (Loud("red", link_commands={"link": "whoami"}), {}, "link_commands: two commands are called 'whoami'"),
        (Loud("red", link_commands={"link": None}), {"linker": None}, "link_commands has no effect"),
        (Loud("red", link_commands={"link": None}, session_family="caller_supplied"), {}, "has no effect"),
    ],
)
def test_names_that_make_no_sense_are_found_when_the_host_is_built(
    channel: Loud, options: dict[str, Any], finding: str
) -> None:
    settings: dict[str, Any] = {"linker": OneTimeCodeIdentityLinker(), **options}
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(EchoAgent(), channels=[channel], **settings)
    assert any(finding in one for one in caught.value.findings)


def test_a_channels_own_command_of_such_a_name_is_not_overwritten() -> None:
    async def own(_: Any) -> None:
        return

    red = Loud("red", commands=[ChannelCommand(name="link", description="", handler=own)])
    with pytest.raises(ChannelConfigurationError, match="a command 'link' of its own"):
        AgentFrameworkHost(EchoAgent(), channels=[red], linker=OneTimeCodeIdentityLinker())
    renamed = Loud("red", commands=red.own, link_commands={"link": "tie"})
    AgentFrameworkHost(EchoAgent(), channels=[renamed], linker=OneTimeCodeIdentityLinker())


async def test_refusals_are_answered_in_words() -> None:
    red, blue = Loud("red"), Loud("blue")
    async with open_host([red, blue], link_policy=DenyAllLinks()):
        assert await red.says("ann", "/link confirm") == "There is nothing to confirm."
        assert await red.says("ann", "/link 0000-0000") == "This code is invalid. Ask for a new one."
        code = code_in(await red.says("ann", "/link"))
        await agree(blue, code)
        assert await red.says("ann", "/link confirm") == "These accounts can't be linked."
        assert await red.says("ann", "/whoami") == "You are “Ann” (id ann) on red. Not linked."
        for _ in range(5):
            last = await red.says("ann", "/link 0000-0000")
        assert str(last).startswith("Too many attempts. Try again in ")


async def test_the_anonymous_link_nothing() -> None:
    red = Loud("red")
    async with open_host([red]):
        nobody = red.by("anonymous", anonymous=True)
        for call in (red.context.links.begin, red.context.links.unlink, red.context.links.whoami):
            with pytest.raises(Exception, match="no account to link"):
                await call(nobody)


async def test_what_was_said_before_the_link_stays_readable_and_cannot_be_changed() -> None:
    red, blue = Loud("red"), Loud("blue")
    async with open_host([red, blue]) as host:
        before = await blue.asks("ann2", "before")
        await link(red, blue)
        ann, ann2, context = red.by("ann"), blue.by("ann2"), blue.context
        assert (await context.runs.get(ann2, before)).run_id == before
        for call in (context.runs.cancel, context.runs.delete):
            with pytest.raises(NotFoundError):
                await call(ann2, before)
        # It was ann2's, and it is shown to ann2 alone.
        with pytest.raises(NotFoundError):
            await red.context.runs.get(ann, before)
        after = await blue.asks("ann2", "after")
        assert (await red.context.runs.get(ann, after)).run_id == after
        await blue.says("ann2", "/unlink")
        assert (await context.runs.get(ann2, before)).run_id == before
        with pytest.raises(NotFoundError):
            await context.runs.get(ann2, after)
        assert (await get_store(host).identities.find(ann2.identity)).archived == ()  # type: ignore[union-attr]


async def test_a_conversation_of_before_stays_readable_and_cannot_be_changed() -> None:
    red, blue = Loud("red"), Loud("blue")
    async with open_host([red, blue]):
        ann2, conversations = blue.by("ann2"), blue.context.conversations
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}], "id": "msg_1"}
        made = await conversations.save(ann2, None, {"topic": "rooms"}, [item])
        name = made.conversation_id
        await link(red, blue)
        assert (await conversations.get(ann2, name)).metadata == {"topic": "rooms"}
        assert [one.item_id for one in await conversations.list_items(ann2, name)] == ["msg_1"]
        assert (await conversations.get_item(ann2, name, "msg_1")).item_id == "msg_1"
        writes: list[Any] = [
            lambda: conversations.save(ann2, name, {}),
            lambda: conversations.delete(ann2, name),
            lambda: conversations.add_items(ann2, name, [item]),
            lambda: conversations.delete_item(ann2, name, "msg_1"),
        ]
        for write in writes:
            with pytest.raises(NotFoundError):
                await write()
        with pytest.raises(NotFoundError):
            await red.context.conversations.get(red.by("ann"), name)


async def test_a_turn_that_runs_meanwhile_ends_where_it_began() -> None:
    inside, may = asyncio.Event(), asyncio.Event()

    async def slow(text: str) -> str:
        if text == "slow":
            inside.set()
            await may.wait()
        return text

    red, blue = Loud("red"), Loud("blue")
    async with open_host([red, blue], target=slow) as host:
        turn = asyncio.create_task(blue.asks("ann2", "slow"))
        await inside.wait()
        old = await get_store(host).identities.find(blue.by("ann2").identity)
        assert old is not None
        await link(red, blue)
        may.set()
        run = await blue.context.runs.get(blue.by("ann2"), await turn)
        assert (run.owner, run.status) == (old.isolation_key, "completed")


async def test_who_is_denied_gets_no_word_of_it() -> None:
    red = Loud("red", allowlist=NativeIdAllowlist(["ann"]))
    async with open_host([red]):
        for words in ("/link", "/connect", "/unlink", "/whoami"):
            with pytest.raises(ForbiddenError):
                await red.says("mallory", words)


class Claims(OneTimeCodeIdentityLinker, ReadsClaims):
    """A linker that knows whom claims speak of."""

    gives_claims = True

    def get_subject(self, claims: Any) -> str | None:
        return claims.get("sub")


@pytest.mark.parametrize("silently", [True, False])
async def test_a_verified_claim_links_later_channels_silently(silently: bool) -> None:
    red, blue = Loud("red"), Loud("blue", emits_verified_claims=True)
    async with open_host([red, blue], linker=Claims(), link_verified_claims=silently) as host:
        links = get_components(host).links
        assert links is not None
        await links.join(LinkProof(linker="test", identity=red.by("ann").identity, subject="s"))
        request = ChannelRequest(channel="blue", input="hello")
        for caller in (blue.by("ann2", claims={"sub": "s"}), blue.by("bob", claims={"sub": "t"}), blue.by("eve")):
            await blue.context.run(request, caller)
        linked = [await blue.says(name, "/whoami") for name in ("ann2", "bob", "eve")]
        assert [str(one).endswith("Linked with red.") for one in linked] == [silently, False, False]


async def test_a_linker_with_routes_serves_them() -> None:
    class Pages(OneTimeCodeIdentityLinker, SupportsLinkRoutes):
        path = "/pages"

        def routes(self) -> Any:
            return [Route("/start/{text}", lambda request: PlainTextResponse(request.path_params["text"]))]

    host = AgentFrameworkHost(EchoAgent(), channels=[Loud("red")], linker=Pages())
    transport = httpx.ASGITransport(host.app)
    async with host.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://desk") as client:
        assert (await client.get("/pages/start/here")).text == "here"
        assert (await client.get("/pages/elsewhere")).status_code == 404
    with pytest.raises(ChannelConfigurationError, match="its path '/pages' is also that of the channel 'invocations'"):
        AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel(path="/pages")], linker=Pages())
