"""Files that come in: fetched one after another, within the limits of their channel."""

import base64

import pytest

from frontdesk.chat.media import MediaLimits, fetch_contents, inline_contents
from frontdesk.chat.messages import InboundFile
from frontdesk.errors import FileTooLargeError, InvalidRequestError, RequestError

LIMITS = MediaLimits(max_files=2, max_bytes=10)


class Server:
    """Has files of any size, and notes how much it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def fetch(self, file: InboundFile, max_bytes: int) -> bytes:
        self.asked.append(max_bytes)
        return b"x" * int(file.file_id)


def files(*sizes: int, said: bool = True) -> list[InboundFile]:
    return [
        InboundFile(file_id=str(size), size=size if said else None, media_type="image/png", name=f"{size}.png")
        for size in sizes
    ]


async def test_files_are_contents_with_their_names() -> None:
    server = Server()
    first, second = await fetch_contents(files(4, 6), server.fetch, LIMITS)
    assert (first.type, first.media_type) == ("data", "image/png")
    assert base64.b64decode((first.uri or "").partition(",")[2]) == b"xxxx"
    assert second.additional_properties["filename"] == "6.png"
    assert server.asked == [10, 6]


@pytest.mark.parametrize(
    ("sizes", "said", "error", "fetched"),
    [
        ((1, 1, 1), True, InvalidRequestError, 0),
        ((11,), True, FileTooLargeError, 0),
        ((11,), False, FileTooLargeError, 1),
        ((6, 5), True, FileTooLargeError, 1),
        ((6, 5), False, FileTooLargeError, 2),
    ],
)
async def test_too_many_or_too_large(
    sizes: tuple[int, ...], said: bool, error: type[RequestError], fetched: int
) -> None:
    server = Server()
    with pytest.raises(error):
        await fetch_contents(files(*sizes, said=said), server.fetch, LIMITS)
    assert len(server.asked) == fetched


async def test_a_made_up_media_type_is_none() -> None:
    (content,) = await fetch_contents([InboundFile(file_id="1", media_type="a,b;c")], Server().fetch, LIMITS)
    assert content.media_type == "application/octet-stream"


def test_what_came_with_the_event_and_can_be_read_is_taken() -> None:
    sent = [
        InboundFile(media_type="image/png", data="aGk="),
        InboundFile(media_type="image/png", data="no base64!"),
        InboundFile(media_type="nonsense", data="aGk="),
        InboundFile(file_id="later"),
    ]
    assert [content.uri for content in inline_contents(sent)] == ["data:image/png;base64,aGk="]


def test_the_limits_check_themselves() -> None:
    assert MediaLimits().findings() == []
    assert MediaLimits(max_files=0, max_bytes=-1).findings() == [
        "media: max_files must be positive",
        "media: max_bytes must be positive",
    ]
