"""Pages and seals: no name becomes markup, and nothing that was not sealed here opens."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.linkers.oauth.ceremony import (
    MAX_NAME_LENGTH,
    Seal,
    build_done_page,
    build_leaving_page,
    confirm_page,
    plain,
    start_page,
)
from frontdesk.models.identity import ChannelIdentity

ODD = st.text(alphabet=st.sampled_from("<>\"'&;/=() \u202e\u200b\x00\r\n\tab%"), max_size=60) | st.text(max_size=60)


class Outline(HTMLParser):
    """The elements of a page, without what is written in them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


def person(name: str, native_id: str = "42") -> ChannelIdentity:
    return ChannelIdentity(channel="telegram", native_id=native_id, attributes={"name": name})


@given(ODD, ODD, ODD)
def test_names_change_no_page(name: str, native_id: str, account: str) -> None:
    for make in (
        lambda who, label: start_page(who, label, "https://desk.example/link/start/x"),
        lambda who, label: confirm_page(who, "Google", label, link="https://a.example/1", cancel="https://a.example/2"),
        lambda who, label: build_done_page(who, label),
    ):
        odd = make(person(name, native_id), account).body
        usual = make(person("Ada"), "ada").body
        assert Outline(odd).found == Outline(usual).found
        assert not set("\u202e\u200b\x00\r\n") & set(odd)


@given(st.text(alphabet=st.sampled_from("abc&=?/:\"'<>%"), max_size=60))
def test_an_address_stays_within_its_marks(tail: str) -> None:
    page = build_leaving_page("Google", f"https://login.example/?{tail}").body
    assert Outline(page).found == Outline(build_leaving_page("Google", "https://login.example/").body).found


@given(st.text(max_size=300))
def test_a_name_is_short_and_can_be_seen(name: str) -> None:
    shown = plain(name)
    assert len(shown) <= MAX_NAME_LENGTH
    assert shown.isprintable()
    assert plain(shown) == shown


def test_a_name_of_combining_marks_was_too_long() -> None:
    assert len(plain("a" + "\u0301" * 79)) <= MAX_NAME_LENGTH


SEAL = Seal(b"k" * 32)


@given(st.text(max_size=60))
def test_nothing_made_up_opens(text: str) -> None:
    assert SEAL.open("start", text) is None
    assert SEAL.open("start", f"lnk_1.{text}") is None


@given(st.from_regex(r"[a-z]{3}_[0-9a-f]{1,40}", fullmatch=True), st.sampled_from(["start", "state", "confirm"]))
def test_what_was_sealed_opens_for_its_purpose_only(value: str, purpose: str) -> None:
    sealed = SEAL.close(purpose, value)
    assert SEAL.open(purpose, sealed) == value
    assert all(SEAL.open(other, sealed) is None for other in ("start", "state", "confirm", "") if other != purpose)
    assert Seal(b"other").open(purpose, sealed) is None
    assert SEAL.open(purpose, sealed[:-1] + ("A" if sealed[-1] != "A" else "B")) is None
