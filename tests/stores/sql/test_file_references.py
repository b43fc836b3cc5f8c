"""Large data is taken out of a record and put back, and nothing else in it changes."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import UnknownVersionError, UnreadableRecordError
from frontdesk.models.file import compute_file_id
from frontdesk.serialization.codec import decode, encode
from frontdesk.stores.sql.files import MIN_FILE_LENGTH, attach, detach, files_in, has_files, without_contents
from frontdesk_testing.store_samples import data_uri, pictures
from tests.examples import examples

MOST = 10**6


def back(data: bytes, owner: str = "alice", longest: int = MOST) -> tuple[bytes, list[bytes]]:
    detached = detach(data, owner, longest)
    contents = {file_id: content for file_id, (_, content) in detached.files.items()}
    if not contents:
        assert detached.data == data
        return data, []
    assert has_files(detached.data)
    assert sorted(files_in(detached.data)) == sorted(contents)
    return attach(detached.data, contents), list(contents.values())


def test_a_picture_becomes_a_reference() -> None:
    data = encode(pictures("a", "b", "a"))
    detached = detach(data, "alice", MOST)
    assert len(detached.data) < 2000
    content = base64.b64decode(data_uri("a").partition(",")[2])
    file_id = compute_file_id("alice", content)
    assert detached.files[file_id] == ("image/png", content)
    assert f'"uri":"frontdesk-file:{file_id};image/png"'.encode() in detached.data
    assert len(detached.files) == 2
    assert back(data)[0] == data


def test_an_earlier_version_leaves_such_a_record_to_this_one() -> None:
    detached = detach(encode(pictures("a")), "alice", MOST)
    with pytest.raises(UnknownVersionError):
        decode(detached.data)
    assert decode(without_contents(detached.data))[0].text == "a"
    assert without_contents(encode("x")) == encode("x")


def extract_text(count: int) -> str:
    return base64.b64encode(bytes(count)).decode()


SMALL, JUST = (MIN_FILE_LENGTH // 4 - 1) * 3, MIN_FILE_LENGTH // 4 * 3
SAME: dict[str, str] = {
    "small": f"data:image/png;base64,{extract_text(SMALL)}",
    "not base64": f"data:image/png;base64,{'!' * MIN_FILE_LENGTH * 2}",
    "another alphabet": f"data:image/png;base64,{'-_' * MIN_FILE_LENGTH}",
    "no padding": f"data:image/png;base64,{extract_text(JUST + 1).rstrip('=')}",
    "too much padding": f"data:image/png;base64,{extract_text(JUST)}====",
    "padding in the middle": f"data:image/png;base64,{extract_text(JUST + 1)}{extract_text(JUST)}",
    "padding at the end of a slice": f"data:image/png;base64,{'A' * (3 * 4 * 64 * 1024 - 1)}={extract_text(JUST)}",
    "bits behind the end": f"data:image/png;base64,{'A' * MIN_FILE_LENGTH}AB==",
    "no base64": f"data:text/plain,{'A' * MIN_FILE_LENGTH * 2}",
    "a long media type": f"data:{'x' * 300};base64,{extract_text(JUST)}",
    "an odd media type": f"data:image/ü;base64,{extract_text(JUST)}",
    "a text in front": f"see data:image/png;base64,{extract_text(JUST)}",
    "JSON in a text": f'{{"uri":"data:image/png;base64,{extract_text(JUST)}"}}',
    "too large": f"data:image/png;base64,{extract_text(MOST + 1)}",
}


@pytest.mark.parametrize("case", SAME)
def test_what_would_not_be_the_same_again_stays(case: str) -> None:
    assert back(encode([SAME[case], {"b": 1}])) == (encode([SAME[case], {"b": 1}]), [])


@pytest.mark.parametrize("size", [JUST, JUST + 1, JUST + 2, 600_000, MOST])
@pytest.mark.parametrize("kind", ["", "image/png", "text/plain;charset=utf-8", "a,b"])
def test_data_of_any_length_comes_back(size: int, kind: str) -> None:
    content = bytes(number % 256 for number in range(size))
    data = encode({"uri": f"data:{kind};base64,{base64.b64encode(content).decode()}"})
    assert back(data) == (data, [content])


def test_a_text_that_begins_with_a_quote_comes_back() -> None:
    data = encode(f'say "{data_uri("a")}')
    assert back(data)[0] == data


def test_a_reference_that_somebody_wrote_is_a_text() -> None:
    theirs = f"frontdesk-file:{'0' * 64};image/png"
    data = encode([theirs, f'"{theirs}"', data_uri("a")])
    assert back(data)[0] == data


def test_a_file_that_is_gone_is_empty() -> None:
    detached = detach(encode([data_uri("a"), "b"]), "alice", MOST)
    assert decode(attach(detached.data, {})) == ["data:image/png;base64,", "b"]


@pytest.mark.parametrize("data", [b'{"v":2,"files":', b'{"v":2,"files":[],"date":1}', b'{"v":2,"files":[1],"data":1}'])
def test_what_a_newer_version_wrote_is_left_alone(data: bytes) -> None:
    assert has_files(data)
    with pytest.raises(UnreadableRecordError):
        files_in(data)


texts = st.one_of(
    st.text(max_size=30),
    st.builds(lambda name, size: data_uri(name, size), st.text(max_size=3), st.integers(5_000, 9_000)),
    st.builds(lambda name, text: f'{text}"{data_uri(name)}"', st.text(max_size=3), st.text(max_size=3)),
    st.sampled_from(["data:", '"data:', ";base64,", "frontdesk-file:", '\\"data:', "\\"]),
)
trees: Any = st.recursive(texts, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3))


@given(trees)
@examples(60)
def test_any_record_comes_back(tree: Any) -> None:
    data = encode(tree)
    assert back(data)[0] == data
