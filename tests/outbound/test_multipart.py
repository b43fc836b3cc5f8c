"""Forms with files, as others read them."""

from email import message_from_bytes
from email.message import Message

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.outbound.platform import FormFile, encode_form


def get_components(content_type: str, body: bytes) -> list[Message]:
    message = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    assert message.is_multipart()
    return [part for part in message.walk() if not part.is_multipart()]


def test_a_form_has_its_fields_and_files() -> None:
    files = [FormFile("document", "a.txt", "text/plain", b"hello\r\n--x")]
    kind, body = encode_form({"chat_id": "1", "caption": "Grüße"}, files)
    chat, caption, document = get_components(kind, body)
    assert chat.get_payload(decode=True) == b"1"
    assert caption.get_payload(decode=True) == "Grüße".encode()
    assert document.get_payload(decode=True) == b"hello\r\n--x"
    assert document.get_filename() == "a.txt"
    assert document.get_content_type() == "text/plain"


@given(name=st.text(), media_type=st.text(), data=st.binary())
def test_no_name_and_no_data_breaks_the_form(name: str, media_type: str, data: bytes) -> None:
    kind, body = encode_form({"a": "b"}, [FormFile("f", name, media_type, data)])
    boundary = kind.rpartition("=")[2].encode()
    assert body.count(boundary) == 3
    head = body.split(b"--" + boundary)[2].partition(b"\r\n\r\n")[0]
    assert len(head.strip(b"\r\n").split(b"\r\n")) <= 2
    assert body.split(b"\r\n\r\n", 2)[2].startswith(data) or b"\r\n\r\n" in data
