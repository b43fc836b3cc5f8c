"""The contract of a store for files, and for records with large data."""

import asyncio

import pytest

from frontdesk.errors import FileTooLargeError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.conversation import ConversationItem
from frontdesk.models.file import FileLimits, StoredFile
from frontdesk.serialization.codec import encode
from frontdesk_testing.store_samples import (
    NOW,
    ODD_KEYS,
    OTHER,
    OWNER,
    build_messages,
    conversation,
    data_uri,
    inbox_item,
    job,
    keep_session,
    pictures,
    run,
    session,
)

LARGE_BYTES = 700_000


class Files:
    """Files of owners, and the data of records."""

    @pytest.mark.parametrize("size", [0, 1, LARGE_BYTES])
    async def test_a_file_is_there_for_its_owner_alone(self, store: HostStateStore, size: int) -> None:
        content = bytes(number % 251 for number in range(size))
        file = await store.files.put(OWNER, content, media_type="image/png", name="cat \0 ü.png")
        assert file == StoredFile(file_id=file.file_id, media_type="image/png", name="cat \0 ü.png", size=size)
        assert await store.files.get(OWNER, file.file_id) == (file, content)
        for owner in (OTHER, "", f"{OWNER} "):
            assert await store.files.get(owner, file.file_id) is None
        for file_id in ("", "no", f"{file.file_id} ", file.file_id.upper()):
            assert await store.files.get(OWNER, file_id) is None

    async def test_the_same_content_is_kept_once_for_each_owner(self, store: HostStateStore) -> None:
        put = [store.files.put(OWNER, b"cat", media_type="image/png", name="a") for _ in range(10)]
        files = await asyncio.gather(*put)
        assert len({file.file_id for file in files}) == 1
        assert await store.files.put(OWNER, b"cat", media_type="image/jpeg", name="b") == files[0]
        theirs = await store.files.put(OTHER, b"cat", media_type="image/png")
        assert theirs.file_id != files[0].file_id
        assert await store.files.get_size(OWNER) == await store.files.get_size(OTHER) == 3
        assert await store.files.get_size("nobody") == 0

    async def test_no_two_owners_are_confused(self, store: HostStateStore) -> None:
        files = [await store.files.put(owner, b"cat", media_type="image/png") for owner in ODD_KEYS]
        assert len({file.file_id for file in files}) == len(ODD_KEYS)
        for owner, file in zip(ODD_KEYS, files, strict=True):
            assert await store.files.get(owner, file.file_id) == (file, b"cat")

    async def test_a_file_that_is_too_large_is_refused(self, store: HostStateStore) -> None:
        with pytest.raises(FileTooLargeError) as caught:
            await store.files.put(OWNER, bytes(FileLimits().max_file_bytes + 1), media_type="image/png")
        assert (caught.value.status, caught.value.code) == (413, "file_too_large")
        assert await store.files.get_size(OWNER) == 0

    async def test_a_history_with_pictures_is_read_as_it_was_written(self, store: HostStateStore) -> None:
        asked = [*pictures("a", "b"), *build_messages("what is that?"), *pictures("a")]
        await keep_session(store, session(), asked)
        await keep_session(store, session(), [*build_messages("and this?"), *pictures("c")])
        read = list(await store.sessions.history(OWNER, "ses_1"))
        assert encode(read) == encode([*asked, *build_messages("and this?"), *pictures("c")])

    async def test_a_run_with_pictures_is_read_as_it_was_written(self, store: HostStateStore) -> None:
        record = run(input=pictures("a"), details={"input": [{"image_url": data_uri("a")}, {"file_data": "data:"}]})
        for new in (True, False):
            async with store.transaction() as transaction:
                transaction.save_run(record, new=new)
        assert encode(await store.runs.get(OWNER, "run_1")) == encode(record)
        assert await store.runs.get(OTHER, "run_1") is None

    async def test_an_event_with_a_picture_is_claimed_as_it_was_accepted(self, store: HostStateStore) -> None:
        item = inbox_item(chat="c" * 300)
        item = item.replace(request=item.request.replace(input=pictures("a")))
        async with store.transaction() as transaction:
            transaction.accept(item)
        (waiting,) = await store.inbox.waiting("me")
        assert waiting.conversation_id == item.conversation_id
        claimed = await store.inbox.claim("telegram", item.conversation_id, "me")
        assert claimed is not None
        assert encode(claimed.request) == encode(item.request)

    async def test_a_background_run_with_a_picture_is_claimed_as_it_was_queued(self, store: HostStateStore) -> None:
        waits = job()
        waits = waits.replace(admitted=waits.admitted.with_request(input=pictures("a")))
        async with store.transaction() as transaction:
            record = run(status="queued", background=True, input=pictures("a"))
            transaction.queue_run(record, waits, most_waiting=5, most_of_owner=5)
        (claimed,) = await store.background.claim("me", limit=1)
        assert encode(claimed.admitted) == encode(waits.admitted)
        assert encode(await store.runs.get(OWNER, "run_1")) == encode(record)

    async def test_items_with_pictures_are_listed_as_they_were_added(self, store: HostStateStore) -> None:
        bodies = [{"image_url": data_uri(name), "id": name} for name in ("a", "b", "a")]
        items = [
            ConversationItem(item_id=f"item_{number}", conversation_id="conv_1", created_at=NOW, body=body)
            for number, body in enumerate(bodies)
        ]
        async with store.transaction() as transaction:
            transaction.save_conversation(conversation())
            transaction.add_items(OWNER, items)
        listed = await store.conversations.items(OWNER, "conv_1")
        assert [item.body for item in listed] == bodies

    async def test_a_text_that_looks_like_a_reference_stays_a_text(self, store: HostStateStore) -> None:
        file = await store.files.put(OTHER, b"cat", media_type="image/png")
        told = build_messages(f"frontdesk-file:{file.file_id};image/png", f'"frontdesk-file:{file.file_id};image/png"')
        await keep_session(store, session(), [*told, *pictures("a")])
        assert encode(list(await store.sessions.history(OWNER, "ses_1"))) == encode([*told, *pictures("a")])
