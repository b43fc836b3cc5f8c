"""Secrets don't show themselves, and the log shows none."""

import copy
import dataclasses
import gc
import io
import json
import logging
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.logging import AccessFormatter

from frontdesk import Secret, loggers
from frontdesk import secret as secrets
from frontdesk.secret import REDACTED, redact, reveal, shorten
from frontdesk.telemetry import redaction
from frontdesk.telemetry.redaction import RedactionFilter, install
from tests.linear.steps import Steps

VALUE = "hunter2-and-a-bit-more"
BOT = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawX"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
KEY = "fdk_" + "0123456789abcdef" * 3


@dataclasses.dataclass
class Settings:
    token: Secret


class TestSecret:
    @pytest.mark.parametrize(
        "show",
        [
            repr,
            str,
            "{}".format,
            "{:>40}".format,
            "{!r}".format,
            lambda one: "%s %r" % (one, one),  # noqa: UP031
            lambda one: repr(Settings(one)),
            lambda one: repr(dataclasses.asdict(Settings(one))),
            lambda one: repr({"token": [one]}),
            lambda one: json.dumps({"token": one}, default=str),
        ],
    )
    def test_it_is_not_shown(self, show: Any) -> None:
        assert VALUE not in show(Secret(VALUE))

    @pytest.mark.parametrize("write", [pickle.dumps, json.dumps, msgspec.json.encode, msgspec.to_builtins])
    def test_it_is_not_written(self, write: Any) -> None:
        with pytest.raises(TypeError) as caught:
            write(Secret(VALUE))
        assert VALUE not in str(caught.value)

    def test_it_is_revealed_on_request_only(self) -> None:
        secret = Secret(VALUE)
        assert secret.reveal() == reveal(secret) == reveal(VALUE) == Secret(secret).reveal() == VALUE
        assert copy.copy(secret) is copy.deepcopy(secret) is secret
        assert not isinstance(secret, str)

    def test_an_empty_one_is_none(self) -> None:
        with pytest.raises(ValueError, match="empty"):
            Secret("")

    def test_it_is_taken_out_of_texts_for_as_long_as_it_lives(self) -> None:
        one, other = Secret(VALUE), Secret(VALUE)
        assert redact(f"a {VALUE} b") == f"a {REDACTED} b"
        del one
        gc.collect()
        assert redact(VALUE) == REDACTED
        del other
        gc.collect()
        assert redact(VALUE) == VALUE

    def test_one_that_begins_another_leaves_nothing_of_it(self) -> None:
        both = Secret("abcdefgh"), Secret("abcdefgh-ijklmnop")
        assert redact("abcdefgh-ijklmnop abcdefgh") == f"{REDACTED} {REDACTED}"
        assert both[0].reveal() in both[1].reveal()

    def test_a_very_short_one_does_not_spoil_every_text(self) -> None:
        secret = Secret("a")
        assert redact("a banana") == "a banana"
        assert secret.reveal() == "a"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"HTTP Request: POST https://api.telegram.org/bot{BOT}/sendMessage", "https://api.telegram.org/bot"),
        (f"the bot {BOT} is unknown", "the bot"),
        (f"Authorization: Bearer {JWT}", "Authorization: Bearer"),
        (f"[(b'authorization', b'Bearer {VALUE}'), (b'host', b'x')]", "(b'host', b'x')"),
        (f"{{'X-Api-Key': '{VALUE}', 'Host': 'x'}}", "'Host': 'x'"),
        (f"authorization: Basic {VALUE}", "Basic"),
        (f"postgresql://ada:{VALUE}@db.example/state", "@db.example/state"),
        (f"redis://:{VALUE}@cache:6379/0", "@cache:6379/0"),
        (f"GET /link/callback?code={VALUE}&state={VALUE}&lang=en HTTP/1.1", "&lang=en"),
        (f"https://files.example/a.png?sig={VALUE}#top", "#top"),
        (f"https://files.example/a.png?access_token={VALUE}", "https://files.example/a.png"),
        (f'{{"client_secret": "{VALUE}", "grant_type": "x"}}', "grant_type"),
        (f"password={VALUE} host=db", "host=db"),
        (f"the token {JWT} has expired", "has expired"),
        (f"key {KEY} is unknown", "is unknown"),
        ("key sk-proj-0123456789abcdefghij is unknown", "is unknown"),
        ("xoxb-1234567890-abcdefghijkl is unknown", "is unknown"),
        ("ghp_0123456789abcdefghij is unknown", "is unknown"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text: str, left: str) -> None:
    told = redact(text)
    for secret in (VALUE, BOT, JWT, KEY, "0123456789", "1234567890"):
        assert secret not in told
    assert left in told
    assert REDACTED in told


@pytest.mark.parametrize(
    "text",
    [
        "run run_01a1df260363d92465a8cff101ed56fb failed",
        '127.0.0.1:40000 - "POST /invocations HTTP/1.1" 200',
        "runtime mode: long_running (no sign of anything else)",
        "denied on telegram: allowlist_denied_pre_link (no token bucket for a basic bearer of news)",
        "https://example.com/a?lang=en&page=2",
        "no auth: it answers this machine only",
        "token: 5",
        "the secret, however, is kept; a password or an API key is asked for",
    ],
)
def test_what_does_not_is_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("piece", ["-eyJ", "-eyJaaaaa.", "a://", "password=", "bearer ", "1234567:", "?code=", "@"])
def test_a_path_of_tokens_froze_the_host(piece: str) -> None:
    # At most so many looks at each character, by all patterns together: a path of 32 KB took ten seconds.
    text = "/" + piece * (4_000 // len(piece))
    counters = [Steps(shape) for shape, _ in secrets._SHAPES]
    for counter in counters:
        counter.spans(text)
    assert sum(counter.count for counter in counters) < 250 * len(text)


SECRETS = [VALUE, BOT, JWT, KEY, f"Bearer {VALUE}{VALUE}", f"postgresql://ada:{VALUE}@db/", f"password: {VALUE}"]


# Behind a letter nothing looks like a token, whole or cut.
gaps = st.text(alphabet="ab -/:.", max_size=30).map(lambda gap: gap.rstrip("ab"))


@given(st.sampled_from(SECRETS), st.integers(0, 120), gaps, st.integers(1, 120))
def test_a_cut_leaves_no_half_of_a_secret(text: str, before: int, gap: str, most: int) -> None:
    known = Secret(VALUE)
    shown = redact(shorten("x " * (before // 2) + text + gap + text + " y" * 200, most))
    assert all(known.reveal()[:size] not in shown for size in (6, 12))
    assert all(part not in shown for part in (JWT[3:12], BOT[:14], KEY[6:16]))


@pytest.mark.parametrize("size", [900, 5_000, 100_000])
def test_a_cut_leaves_no_half_of_a_password_whose_end_is_far(size: int) -> None:
    shown = redact(shorten("connects to https://ada:" + "p" * size + "@db/", 500))
    assert "pp" not in shown.replace("https", "")
    assert shown.startswith("connects to https")


def test_a_cut_leaves_no_half_of_a_long_secret() -> None:
    key = Secret("-----BEGIN KEY-----\n" + "line of the key\n" * 500)
    shown = redact(shorten("the key is " + key.reveal() + " and more" * 500, 200))
    assert shown.startswith("the key is ... [")
    assert "line of" not in shown


def test_a_text_that_is_not_too_long_is_not_cut() -> None:
    assert shorten("a" * 100, 100) == "a" * 100
    assert shorten("a" * 101, 100) == "a" * 100 + "... [1 more characters]"


@given(st.text())
def test_any_text_can_be_looked_at_and_twice_is_no_more(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789-_", min_size=20, max_size=60), st.text())
def test_a_bearer_token_is_found_in_any_text(token: str, around: str) -> None:
    assert token not in redact(f"{around} Bearer {token} {around}") or token in around


def uninstall() -> None:
    """Other tests look for secrets in what is logged, and must find them."""
    for one in [*redaction._handlers(), *map(logging.getLogger, redaction._names())]:
        one.removeFilter(redaction._filter)


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger whose handler redacts."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    handler.addFilter(RedactionFilter())
    logger = logging.getLogger("tests.redaction")
    logger.propagate = False
    logger.addHandler(handler)
    yield logger, stream
    logger.removeHandler(handler)


class TestLogs:
    def test_a_message_and_its_arguments(self, log: tuple[logging.Logger, io.StringIO]) -> None:
        log[0].error("called %s with %r and %d", f"https://x/bot{BOT}/getMe", {"password": VALUE}, 5)
        assert (
            log[1].getvalue() == f"ERROR called https://x/bot{REDACTED}/getMe with {{'password': '{REDACTED}'}} and 5\n"
        )

    def test_a_traceback(self, log: tuple[logging.Logger, io.StringIO]) -> None:
        try:
            try:
                raise ValueError(f"Bearer {JWT}")
            except ValueError as error:
                raise RuntimeError(f"https://ada:{VALUE}@x/") from error
        except RuntimeError:
            log[0].exception("it failed")
        told = log[1].getvalue()
        assert "RuntimeError" in told
        assert "ValueError" in told
        assert "test_secret.py" in told
        assert JWT not in told
        assert VALUE not in told

    def test_a_value_of_a_secret_wherever_it_stands(self, log: tuple[logging.Logger, io.StringIO]) -> None:
        secret = Secret("an odd phrase")
        log[0].error("he said an odd phrase to %s", {"to": ["an odd phrase"]}, stack_info=True)
        assert secret.reveal() not in log[1].getvalue()

    def test_a_message_that_can_not_be_put_together(self, log: tuple[logging.Logger, io.StringIO]) -> None:
        log[0].error("%d %d", f"Bearer {JWT}")
        assert JWT not in log[1].getvalue()
        assert "%d %d" in log[1].getvalue()

    def test_arguments_stay_for_formatters_that_want_them(self) -> None:
        args = ("127.0.0.1:1", "GET", f"/a?token={VALUE}", "1.1", 200)
        record = logging.LogRecord("uvicorn.access", 20, "", 0, '%s - "%s %s HTTP/%s" %d', args, None)
        RedactionFilter().filter(record)
        assert record.args == ("127.0.0.1:1", "GET", f"/a?token={REDACTED}", "1.1", 200)

    def test_a_record_was_redacted_again_by_each_handler(self, monkeypatch: pytest.MonkeyPatch) -> None:
        texts: list[str] = []
        monkeypatch.setattr(redaction, "redact", lambda text: (texts.append(text), redact(text))[1])
        logger = logging.getLogger("tests.redacted_once")
        logger.propagate = False
        handlers = [logging.StreamHandler(io.StringIO()) for _ in range(3)]
        for one in (logger, *handlers):
            one.addFilter(RedactionFilter())
        for handler in handlers:
            logger.addHandler(handler)
        logger.error("called %s with %s", f"https://x/bot{BOT}/getMe", "a")
        assert texts == [f"called https://x/bot{BOT}/getMe with a"]
        assert all(BOT not in handler.stream.getvalue() for handler in handlers)

    def test_a_message_of_any_length_was_logged(self, log: tuple[logging.Logger, io.StringIO]) -> None:
        log[0].error("%s and %r", "a" * 1_000_000, {"b": "c" * 1_000_000})
        try:
            raise ValueError("d" * 1_000_000)
        except ValueError:
            log[0].exception("it failed", stack_info=True)
        assert len(log[1].getvalue()) < redaction.MAX_MESSAGE + 2 * redaction.MAX_TRACEBACK + 1_000
        assert "more characters]" in log[1].getvalue()

    def test_a_long_path_and_a_word_at_its_end_broke_the_access_log(self) -> None:
        formatter = AccessFormatter('%(client_addr)s "%(request_line)s" %(status_code)s', use_colors=False)
        for path in ("/" + "a" * 100_000, "/?password=", f"/?token={VALUE}"):
            args = ("127.0.0.1:1", "GET", path, "1.1", 200)
            record = logging.LogRecord("uvicorn.access", 20, "", 0, '%s - "%s %s HTTP/%s" %d', args, None)
            RedactionFilter().filter(record)
            line = formatter.format(record)
            assert line.startswith('127.0.0.1:1 "GET /')
            assert len(line) < redaction.MAX_ARGUMENT + 200
            assert VALUE not in line

    async def test_the_http_clients_own_logger(self) -> None:
        client_log, seen = logging.getLogger("httpx"), io.StringIO()
        handler, level, filters = logging.StreamHandler(seen), client_log.level, list(client_log.filters)
        install()
        # One that was added later, and knows nothing of redacting.
        client_log.addHandler(handler)
        client_log.setLevel(logging.DEBUG)
        try:
            transport = httpx.MockTransport(lambda request: httpx.Response(200))
            async with httpx.AsyncClient(transport=transport) as client:
                await client.get(f"https://api.telegram.org/bot{BOT}/getMe?token={VALUE}")
        finally:
            client_log.removeHandler(handler)
            client_log.setLevel(level)
            client_log.filters = filters
            uninstall()
        assert "api.telegram.org" in seen.getvalue()
        assert BOT not in seen.getvalue()
        assert VALUE not in seen.getvalue()


def test_a_handler_that_is_added_later_gets_no_secret_of_the_hosts_own(caplog: pytest.LogCaptureFixture) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    install()
    try:
        loggers.host.addHandler(handler)
        loggers.host.error("could not reach %s", f"https://ada:{VALUE}@db/")
    finally:
        loggers.host.removeHandler(handler)
        uninstall()
    assert stream.getvalue() == f"could not reach https://{REDACTED}@db/\n"
    assert not [one for one in redaction._handlers() if redaction._filter in one.filters]


def test_no_secret_is_in_the_traceback_of_one_that_is_refused() -> None:
    try:
        pickle.dumps({"secret": Secret(VALUE)})
    except TypeError:
        assert VALUE not in traceback.format_exc()
