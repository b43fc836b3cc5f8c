"""The list of conversations: search, the archive, and what goes on everywhere."""

import threading

import pytest
from agent_framework import Agent

from frontdesk.channels.web import conversations as search_module
from frontdesk.channels.web.conversations import MAX_HITS, MAX_READ, Hit, search
from frontdesk.channels.web.mailbox import Chat, Mailbox, MessageRef
from frontdesk.channels.web.wire import Message
from frontdesk.errors import InvalidRequestError
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent
from tests.channels.web.test_mailbox import SPOT, Storage, mailbox, message
from tests.channels.web.visiting import Visitor, open_visitor, web_host


async def everything(box: Mailbox, words: str) -> list[tuple[str, int]]:
    """All hits of a search, page by page."""
    hits: list[tuple[str, int]] = []
    after = ""
    while True:
        found = await search(box, SPOT.visitor, words, after)
        hits += [(hit.chat, hit.number) for hit in found.hits]
        after = found.next
        if not after:
            return hits


async def test_each_message_is_found_once_however_many_pages_that_takes() -> None:
    box = mailbox(Storage())
    await box.change(SPOT.visitor, lambda head: head.with_chat(Chat(id="cnv_1", born=1.0)))
    other = MessageRef(SPOT.visitor, "cnv_1")
    for number in range(2 * MAX_HITS + 5):
        await box.add(other if number % 2 else SPOT, message(f"The Word {number}", f"k{number}"))
    branch = Chat(id="cnv_2", born=2.0, base="cnv_1", shared=3, last=3)
    await box.change(SPOT.visitor, lambda head: head.with_chat(branch))
    await box.add(MessageRef(SPOT.visitor, "cnv_2"), message("a word apart", "apart"))
    hits = await everything(box, "  WORD ")
    assert len(hits) == len(set(hits)) == 2 * MAX_HITS + 6
    assert hits[0] == ("main", MAX_HITS + 3)
    assert await everything(box, "nothing like it") == []


async def test_a_page_of_a_search_reads_a_bounded_number_of_messages() -> None:
    storage = Storage()
    box = mailbox(storage)
    long = Chat(id="main", last=10_000)
    await box.change(SPOT.visitor, lambda head: head.with_chat(long))
    reads: list[str] = []
    get = storage.get

    async def counted(key: str) -> object:
        reads.append(key)
        return await get(key)

    storage.get = counted  # pyright: ignore[reportAttributeAccessIssue]
    found = await search(box, SPOT.visitor, "x", "")
    assert (found.hits, found.next) == ([], f"main:{10_000 - MAX_READ}")
    assert len(reads) <= MAX_READ + 2


@pytest.mark.parametrize(
    ("words", "after"), [("", ""), ("   ", ""), ("x" * 201, ""), ("x", "cnv_9:1"), ("x", "main:a")]
)
async def test_a_search_that_is_none_is_refused(words: str, after: str) -> None:
    with pytest.raises(InvalidRequestError):
        await search(mailbox(Storage()), SPOT.visitor, words, after)


async def test_a_visitor_finds_their_own_messages_alone() -> None:
    async with web_host(EchoAgent()) as url, open_visitor(url) as ada, open_visitor(url) as eve:
        await ada.say("the treasure is under the third step")
        await ada.wait_for_messages(2)
        hits = (await ada.get("search?q=TREASURE"))["hits"]
        assert [(hit["chat"], hit["number"], hit["role"]) for hit in hits] == [
            ("main", 2, "assistant"),
            ("main", 1, "user"),
        ]
        assert await eve.get("search?q=treasure") == {"hits": [], "next": ""}


async def new_chat(ada: Visitor) -> str:
    return (await ada.post("conversations", client_id="new")).json()["conversation"]["id"]


async def test_a_conversation_goes_into_the_archive_and_back() -> None:
    async with web_host(EchoAgent()) as url, open_visitor(url) as ada:
        chat = await new_chat(ada)
        for archived in (True, False):
            assert (await ada.post(f"conversations/{chat}", archived=archived)).status_code == 200
            listed = {one["id"]: one for one in (await ada.get("me"))["conversations"]}
            assert listed[chat].get("archived", False) == archived
        assert (await ada.post("conversations/main", archived=True)).status_code == 409
        assert (await ada.post(f"conversations/{chat}")).status_code == 400
        assert (await ada.post("conversations/cnv_9", archived=True)).status_code == 404


async def test_only_continue_everywhere_moves_the_pointer_of_the_person() -> None:
    client = ScriptedChatClient([f"answer {number}" for number in range(9)])
    async with web_host(Agent(client, name="Remembering")) as url, open_visitor(url) as ada, open_visitor(url) as eve:
        await ada.say("in the main one")
        await ada.wait_for_messages(2)
        chat = await new_chat(ada)
        missing = await ada.post(f"conversations/{chat}/everywhere", client_id="x")
        assert missing.status_code == 404
        await ada.say("in another one", chat)
        await ada.wait_for_messages(2, chat)
        await ada.say("again in the main one")
        await ada.wait_for_messages(4)
        assert client.seen[-1][0].text == "in the main one"
        assert (await eve.post(f"conversations/{chat}/everywhere", client_id="x")).status_code == 404
        assert (await ada.post("conversations/main/everywhere", client_id="x")).status_code == 409
        assert (await ada.post(f"conversations/{chat}/everywhere", client_id="x")).status_code == 200
        await ada.say("and on")
        await ada.wait_for_messages(6)
        assert [one.text for one in client.seen[-1]] == ["in another one", "answer 1", "and on"]
        await ada.say("here too", chat)
        await ada.wait_for_messages(4, chat)
        assert [one.text for one in client.seen[-1]][-3:] == ["and on", "answer 3", "here too"]


async def test_a_search_in_long_messages_stopped_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    box, on_loop = mailbox(Storage()), list[int]()
    look = search_module._hit

    def looked(chat: str, found: Message, words: str) -> Hit | None:
        if threading.current_thread() is threading.main_thread():
            on_loop.append(len(found.text))
        return look(chat, found, words)

    monkeypatch.setattr(search_module, "_hit", looked)
    for number in range(6):
        await box.add(SPOT, message("long " * 6_000, f"long {number}"))
        await box.add(SPOT, message("short", f"short {number}"))
    assert len((await search(box, SPOT.visitor, "o", "")).hits) == 12
    assert on_loop == [5] * 6
