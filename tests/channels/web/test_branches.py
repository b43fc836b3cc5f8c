"""An earlier message said in another way: a branch with what came before it, of which the other one knows nothing."""

import base64

from agent_framework import Agent

from frontdesk import EventLimits, RateLimit
from frontdesk.channels.web.mailbox import Chat, Head
from frontdesk.scripted import ScriptedChatClient
from tests.channels.web.test_files import build_file
from tests.channels.web.visiting import Visitor, open_visitor, web_host


def build_remembering_agent() -> tuple[Agent, ScriptedChatClient]:
    """An agent whose client notes what it was sent."""
    client = ScriptedChatClient([f"answer {number}" for number in range(9)])
    return Agent(client, name="Remembering"), client


async def edit(ada: Visitor, chat: str, number: int, text: str, client_id: str) -> str:
    """Says something in the place of an earlier message, and returns the branch."""
    body = {"client_id": client_id, "text": text, "instead_of": number}
    response = await ada.post(f"conversations/{chat}/messages", **body)
    assert response.status_code == 200, response.text
    return response.json()["conversation"]


def list_heard(client: ScriptedChatClient) -> list[str]:
    """What the model was told in its last call."""
    return [message.text for message in client.seen[-1]]


async def test_a_message_that_is_edited_begins_a_branch_with_what_came_before() -> None:
    agent, client = build_remembering_agent()
    async with web_host(agent) as url, open_visitor(url) as ada:
        for count, text in enumerate(("one", "two", "three"), 1):
            await ada.say(text)
            await ada.wait_for_messages(2 * count)
        for _ in range(2):
            branch = await edit(ada, "main", 3, "two and a half", "e1")
        assert await ada.wait_for_messages(4, branch)
        assert await ada.texts(branch) == ["one", "answer 0", "two and a half", "answer 3"]
        assert list_heard(client) == ["one", "answer 0", "two and a half"]
        await ada.say("four", branch)
        await ada.wait_for_messages(6, branch)
        assert list_heard(client)[-3:] == ["two and a half", "answer 3", "four"]
        await ada.say("five")
        await ada.wait_for_messages(8)
        assert list_heard(client) == ["one", "answer 0", "two", "answer 1", "three", "answer 2", "five"]
        chats = {chat["id"]: chat for chat in (await ada.get("me"))["conversations"]}
        assert (chats[branch]["base"], chats[branch]["shared"]) == ("main", 2)


async def test_the_first_message_can_be_edited_and_a_branch_of_a_branch_has_the_same_base() -> None:
    agent, client = build_remembering_agent()
    async with web_host(agent) as url, open_visitor(url) as ada:
        await ada.say("one")
        await ada.wait_for_messages(2)
        first = await edit(ada, "main", 1, "uno", "e1")
        await ada.wait_for_messages(2, first)
        assert list_heard(client) == ["uno"]
        second = await edit(ada, first, 1, "eins", "e2")
        assert await ada.wait_for_messages(2, second)
        chats = {chat["id"]: chat for chat in (await ada.get("me"))["conversations"]}
        assert {chats[one]["base"] for one in (first, second)} == {"main"}


async def test_only_ones_own_messages_can_be_edited() -> None:
    agent, _ = build_remembering_agent()
    async with web_host(agent) as url, open_visitor(url) as ada, open_visitor(url) as eve:
        await ada.say("one")
        await ada.wait_for_messages(2)
        for visitor, number in ((ada, 2), (ada, 9), (ada, -1), (eve, 1)):
            body = {"client_id": "e", "text": "x", "instead_of": number}
            assert (await visitor.post("conversations/main/messages", **body)).status_code == 404
        assert [chat["id"] for chat in (await ada.get("me"))["conversations"]] == ["main"]


async def test_branches_count_as_conversations_and_go_with_the_one_they_have_left() -> None:
    agent, _ = build_remembering_agent()
    async with web_host(agent, max_conversations=3) as url, open_visitor(url) as ada:
        response = await ada.post("conversations", client_id="new")
        chat = response.json()["conversation"]["id"]
        await ada.say("one", chat)
        await ada.wait_for_messages(2, chat)
        branch = await edit(ada, chat, 1, "uno", "e1")
        await ada.wait_for_messages(2, branch)
        body = {"client_id": "e2", "text": "x", "instead_of": 1}
        full = await ada.post(f"conversations/{chat}/messages", **body)
        assert (full.status_code, full.json()["error"]["code"]) == (409, "too_many_chats")
        assert (await ada.http.delete(f"/chat/api/conversations/{chat}")).status_code == 200
        assert [chat["id"] for chat in (await ada.get("me"))["conversations"]] == ["main"]


async def test_a_message_that_is_not_taken_leaves_no_branch() -> None:
    agent, _ = build_remembering_agent()
    limits = EventLimits(per_caller=RateLimit(1, 3600))
    async with web_host(agent, event_limits=limits) as url, open_visitor(url) as ada:
        await ada.say("one")
        await ada.wait_for_messages(2)
        body = {"client_id": "e", "text": "uno", "instead_of": 1}
        assert (await ada.post("conversations/main/messages", **body)).status_code == 429
        assert [chat["id"] for chat in (await ada.get("me"))["conversations"]] == ["main"]


def test_a_message_lies_under_the_conversation_that_has_added_it() -> None:
    chats = (
        Chat(id="main", last=9),
        Chat(id="b", base="main", shared=4, last=8, born=1.0),
        Chat(id="c", base="b", shared=6, last=7, born=2.0),
    )
    head = Head(chats=chats)
    assert [head.holder("c", number) for number in (1, 4, 5, 6, 7)] == ["main", "main", "b", "b", "c"]
    assert [head.root(chat) for chat in ("main", "b", "c", "unknown")] == ["main", "main", "main", "unknown"]
    assert [chat.id for chat in head.branches("b")] == ["b", "c"]


async def test_a_message_that_is_said_anew_keeps_drops_and_gets_files() -> None:
    client = ScriptedChatClient(["one", "two", "three"])
    async with web_host(Agent(client, "Look."), max_files=2, max_file_bytes=20) as url, open_visitor(url) as ada:
        number = await ada.say(
            "look", files=[build_file(b"first", "text/plain", "a.txt"), build_file(b"second", "text/plain", "b.txt")]
        )
        first, second = (await ada.wait_for_messages(2))[0]["files"]
        body = {"client_id": "again", "text": "", "instead_of": number}
        new = [build_file(b"third", "text/plain", "c.txt")]
        refused = {
            "file_not_kept": {"keep": ["fil_unknown"]},
            "too_many_files": {"keep": [first["id"], second["id"]], "files": new},
            "files_too_large": {"keep": [first["id"]], "files": [build_file(b"x" * 16)]},
            "invalid_request": {"keep": [first["id"]], "instead_of": 0},
        }
        for code, fields in refused.items():
            response = await ada.post("conversations/main/messages", **{**body, **fields})
            assert response.json()["error"]["code"] == code
        assert len((await ada.get("me"))["conversations"]) == 1
        response = await ada.post("conversations/main/messages", **body, keep=[second["id"]], files=new)
        branch = response.json()["conversation"]
        said = (await ada.wait_for_messages(2, branch))[0]
        assert ([file["name"] for file in said["files"]], said["files"][0]) == (["b.txt", "c.txt"], second)
        assert [content.uri for content in client.seen[-1][-1].contents] == [
            f"data:text/plain;base64,{base64.b64encode(data).decode()}" for data in (b"second", b"third")
        ]
