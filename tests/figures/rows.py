"""The two cost tables of the threat model: limits from the code, measurements from `make figures`, tests.

A row has no number of its own. A number is a placeholder: a limit of the code, or the size of an attack. To add a row,
add a `Row` here and run `make figures ARGS="--render"`, or `make figures ARGS="name"` if it has an attack.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontdesk import HttpLimits, ServerLimits
from frontdesk.asgi import messages
from frontdesk.channels.responses.config import ResponsesConfig
from frontdesk.channels.web.conversations import MAX_READ
from frontdesk.chat.growing import MAX_FREE_LENGTH
from frontdesk.concurrency import timeouts
from frontdesk.concurrency.offload import MAX_RENDERED_HERE
from frontdesk.http.bodies import MAX_DEPTH
from frontdesk.http.server_limits import MIN_SPARE_FILES
from frontdesk.inbox.groups import UNLINKED
from frontdesk.inbox.quarantine import MAX_FIRST_SECONDS, MAX_HELD_SECONDS
from frontdesk.inbox.worker import MAX_CONCURRENT, MAX_PER_SENDER
from frontdesk.interfaces.storage.pages import MAX_PAGE_BYTES
from frontdesk.json_size import VALUE_BYTES
from frontdesk.models.file import FileLimits
from frontdesk.models.operations import DEFAULT_EVENT_LIMITS
from frontdesk.openai.tools import MAX_TOOLS
from frontdesk.runners.wakes import Shares
from frontdesk.runs.background.followers import PAGE_EVENTS as EVENTS_PAGE
from frontdesk.server import http_protocol, socket_protocol
from frontdesk.server.http_protocol import ConnectionGate
from frontdesk.server.unread import UNSENT_BYTES
from frontdesk.sessions.memory import MAX_HISTORY_BYTES
from frontdesk.sessions.snapshot import MAX_BYTES as MAX_SESSION
from frontdesk.telemetry.redaction import MAX_ARGUMENT, MAX_MESSAGE
from tests.figures import attacks
from tests.figures.child import HOLD_SECONDS, MIB
from tests.figures.measuring import CLOSED, OPEN, Attack

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/internals/threat-model.md"
_HEADS = "tests/faults/test_request_heads.py::"
_FRAMES = "tests/faults/test_bytes_and_frames_of_others.py::"
_SHAPES = "tests/faults/test_shapes_of_bodies.py::"
_UNREAD = "tests/faults/test_readers_that_never_read.py::"
_WORK = "tests/faults/test_large_work_of_others.py::"
_STAYS = "tests/faults/test_connections_that_stay.py::"
_WAITS = "tests/faults/test_what_others_had_to_wait_for.py::"


@dataclass(frozen=True)
class Row:
    """A row of a cost table."""

    sends: str
    limit: str
    tests: tuple[str, ...]
    attack: Attack | None = None
    max_files: int = 0

    @property
    def name(self) -> str:
        """The key of its measurements."""
        return self.attack.__name__ if self.attack else ""

    @property
    def values(self) -> dict[str, str]:
        """The values of its placeholders. A measurement is good as long as they are the same."""
        return {name: VALUES[name] for name in re.findall(r"{(\w+)}", self.sends + self.limit)}


def _size(count: float) -> str:
    units = ["KiB", "MiB", "GiB"]
    while count >= 1024 * 1024:
        count /= 1024
        units.pop(0)
    return f"{count / 1024:g} {units[0]}"


_server, _limits, _frames = ServerLimits(), HttpLimits(), socket_protocol._SMALL_FRAMES
_SIZES = {
    "url_bytes": _server.max_url_bytes,
    "header_bytes": _server.max_header_bytes,
    "head_bytes": _server.max_head_bytes,
    "log_argument": MAX_ARGUMENT,
    "log_message": MAX_MESSAGE,
    "body_bytes": ResponsesConfig.max_body_bytes,
    "bytes_per_caller": _limits.max_bytes_per_caller or 0,
    "bytes_in_all": _limits.max_bytes or 0,
    "always_allowed": messages._MAX_FREE_BYTES,
    "unsent_bytes": UNSENT_BYTES,
    "session_bytes": MAX_SESSION,
    "file_bytes": FileLimits().max_file_bytes,
    "owner_bytes": FileLimits().max_owner_bytes,
    "visitor_bytes": FileLimits().max_visitor_bytes,
    "visitors_bytes": FileLimits().max_visitors_bytes,
    "history_bytes": MAX_HISTORY_BYTES,
    "page_bytes": MAX_PAGE_BYTES,
    "item_bytes": MIB,
    "empty_lists": attacks.EMPTY_LISTS,
    "one_body": attacks.BODY,
    "value_bytes": VALUE_BYTES,
    "discarded_bytes": http_protocol._MAX_DISCARDED_BYTES,
}
_COUNTS = {
    "headers": _server.max_headers,
    "pipelined": _server.max_pipelined,
    "connections": _server.max_connections,
    "spare_files": MIN_SPARE_FILES,
    "running": _limits.max_running_per_caller or 0,
    "values": ResponsesConfig.max_body_values,
    "levels": MAX_DEPTH,
    "frames_burst": _frames.burst or 0,
    "frames_rate": _frames.requests,
    "quarantined_once": int(MAX_FIRST_SECONDS),
    "quarantined": int(MAX_HELD_SECONDS),
    "turns_of_sender": MAX_PER_SENDER,
    "turns": MAX_CONCURRENT,
    "searched": MAX_READ,
    "rendered_here": MAX_RENDERED_HERE,
    "rendered_freely": MAX_FREE_LENGTH,
    "waiting_unlinked": DEFAULT_EVENT_LIMITS.max_waiting_for_unlinked or 0,
    "tools": MAX_TOOLS,
    "events": EVENTS_PAGE,
    "many_connections": attacks.CONNECTIONS,
    "many_sockets": attacks.SOCKETS,
    "max_files": attacks.MAX_FILES,
    "many_refused": attacks.REFUSED,
    "many_pipelined": attacks.PIPELINED,
    "many_references": attacks.REFERENCES,
    "many_keys": attacks.KEYS,
    "many_bodies": attacks.BODIES,
    "wide_bodies": attacks.WIDE_BODIES,
    "parts": attacks.PARTS,
    "history": attacks.HISTORY,
    "many_frames": attacks.FRAMES,
    "many_tools": attacks.TOOLS,
    "readers": attacks.READERS,
    "log_requests": attacks.LOG_REQUESTS,
}
_SECONDS = {
    "head_seconds": _server.head_seconds,
    "send_seconds": _server.send_seconds,
    "linger_seconds": http_protocol._LINGER_SECONDS,
    "hold_seconds": HOLD_SECONDS,
}
_SLOTS, _GROUPS = MAX_CONCURRENT, ("web", UNLINKED)
_SHARES = {
    "lasting_share": ConnectionGate(_server, _server.max_connections).lasting.most / _server.max_connections,
    "reserved_share": 1 - Shares(_SLOTS, _GROUPS)._shared / _SLOTS,
}
VALUES = {
    **{name: _size(value) for name, value in _SIZES.items()},
    **{name: f"{value:,}" for name, value in _COUNTS.items()},
    **{name: f"{value:g} s" for name, value in _SECONDS.items()},
    **{name: f"{value:.0%}" for name, value in _SHARES.items()},
}

STRANGERS = [
    Row(
        "{many_connections} heads that are too large: URL, header, number of headers",
        "URL: {url_bytes}, then `414`. One header: {header_bytes}, all: {head_bytes} and {headers} headers, then `431`",
        (_HEADS + "test_a_head_without_end_was_read_for_ever",),
        attacks.long_heads,
    ),
    Row(
        "{many_connections} connections that send nothing",
        "closed after {head_seconds}",
        (
            _HEADS + "test_half_sent_heads_were_held_open",
            _STAYS + "test_a_connection_that_sends_nothing_whole_was_never_closed",
        ),
        attacks.silent_connections,
    ),
    Row(
        "{many_connections} connections that send half a head",
        "`408` after {head_seconds}",
        (_HEADS + "test_two_hundred_half_sent_heads_were_held_open",),
        attacks.half_heads,
    ),
    Row(
        "{many_sockets} silent connections to a host that may open {max_files} files",
        "{connections} connections, and less if the process would have fewer than {spare_files} files left. "
        "Further connections get a `503`",
        (
            _HEADS + "TestConnections::test_more_connections_than_allowed_were_kept",
            _STAYS + "test_silent_connections_kept_others_out_for_good",
        ),
        attacks.silent_sockets,
        max_files=attacks.MAX_FILES,
    ),
    Row(
        "{many_refused} bodies that continue after a `404` or `401`, in chunks of one byte",
        "nothing is stored. After {discarded_bytes} nothing more is read, and {linger_seconds} later the connection is "
        "closed. Slower ones are closed after {head_seconds}",
        (
            _STAYS + "test_the_rest_of_a_refused_body_was_read_without_end",
            _HEADS + "test_the_rest_of_a_body_kept_a_connection_open_after_its_refusal",
        ),
        attacks.refused_bodies,
    ),
    Row(
        "{many_connections} bodies with endless trailers",
        "{head_bytes}, then closed. Trailers are never used as headers",
        (_HEADS + "test_trailers_without_end_were_kept",),
        attacks.long_trailers,
    ),
    Row(
        "{many_pipelined} pipelined requests",
        "{pipelined} may wait, then the connection is closed",
        (_HEADS + "test_a_flood_of_pipelined_requests_was_kept",),
        attacks.pipelined_requests,
    ),
    Row(
        "a WebSocket handshake with a body or an oversized header",
        "`400`",
        (_HEADS + "TestWebSockets::test_a_handshake_that_could_not_be_read_was_held_open",),
    ),
    Row(
        "compressed WebSocket messages",
        "compression is not negotiated",
        (_WAITS + "test_messages_were_unpacked_before_anybody_counted_them",),
    ),
    Row(
        "rejected WebSocket handshakes, or frames before the handshake ends",
        "one access log line, no error log line",
        (_FRAMES + "TestLogs::test_a_refused_handshake_was_logged_as_an_error",),
    ),
    Row(
        "repeated `Host`, `Origin`, `Content-Type` or credential headers",
        "`400`",
        (
            _WAITS + "test_of_two_names_or_credentials_the_last_counted",
            "tests/faults/test_access_two_credentials.py::test_a_repeated_credential_was_accepted",
        ),
    ),
    Row(
        "{log_requests} requests with a path that slows down the redaction of logs",
        "{log_argument} of a path and {log_message} of a message are logged (`telemetry/redaction.py`)",
        ("tests/test_secret.py::test_a_path_of_tokens_froze_the_host",),
        attacks.paths_of_tokens,
    ),
    Row(
        "messages of many visitors without an account",
        "{reserved_share} of {turns} chat turns are reserved in equal parts, one for all these visitors. "
        "Their messages are rejected when {waiting_unlinked} wait",
        (
            "tests/inbox/test_shares.py::test_thirty_cookies_with_600_messages_delayed_another_channel",
            "tests/inbox/test_shares.py::test_unlinked_visitors_could_let_any_number_of_messages_wait",
        ),
    ),
    Row(
        "files of many visitors without an account",
        "{visitor_bytes} per visitor and {visitors_bytes} for all",
        ("tests/channels/web/test_visitor_files.py::test_visitors_with_new_cookies_filled_the_disk",),
    ),
    Row(
        "open pages of many visitors without an account",
        "feeds of pages have {lasting_share} of the connections, then `503`",
        (_STAYS + "test_pages_of_anonymous_visitors_kept_all_others_out_for_as_long_as_they_stayed_open",),
    ),
    Row(
        "a WebSocket handshake behind a request that is being answered",
        "the connection is closed, and the request is cancelled",
        (_HEADS + "TestWebSockets::test_a_request_before_a_handshake_was_never_told_that_its_client_had_left",),
    ),
    Row(
        "backtracking in a regular expression",
        "linear time",
        ("tests/linear/test_patterns.py::test_a_pattern_takes_linear_time",),
    ),
    Row(
        "quadratic time in a parser",
        "linear time, counted in executed lines",
        ("tests/linear/test_loops.py::test_a_reader_takes_linear_time",),
    ),
]
CALLERS = [
    Row(
        "{many_references} references to an item of {item_bytes}",
        "`413`: references count with the size of their item, {body_bytes} in all",
        (_SHAPES + "test_many_references_to_one_large_item_read_it_again_and_again",),
        attacks.references,
    ),
    Row(
        "{empty_lists} of `[]` in an unknown field",
        "`400` above {values} values",
        (_SHAPES + "test_a_wide_body_held_everybody_up",),
        attacks.empty_lists,
    ),
    Row(
        "an object with {many_keys} keys",
        "`400` above {values} values",
        (_SHAPES + "test_every_shape_is_refused_or_recorded",),
        attacks.many_keys,
    ),
    Row(
        "deeply nested values, in any field",
        "`400` above {levels} levels, before the target runs",
        (_SHAPES + "test_brackets_in_a_field_that_nobody_knows_ran_and_were_not_recorded",),
    ),
    Row(
        "{many_bodies} bodies of {one_body} at once, for runs of {hold_seconds}",
        "{bytes_per_caller} per caller, then `429` before the body is read. {bytes_in_all} for all callers, "
        "then `503`. The only body of a caller is accepted up to {always_allowed}",
        (
            _FRAMES + "TestBytes::test_large_bodies_were_let_in_by_their_number_and_not_by_their_sum",
            _FRAMES + "TestBytes::test_others_had_taken_all_bytes",
        ),
        attacks.large_bodies,
    ),
    Row(
        "{wide_bodies} bodies with {parts} parts of one letter at once, for runs of {hold_seconds}",
        "each value counts as {value_bytes} of the same {bytes_per_caller} and {bytes_in_all}",
        ("tests/faults/test_memory_of_others.py::TestValues::test_values_of_bodies_were_not_counted",),
        attacks.wide_bodies,
    ),
    Row(
        "large or incomplete messages on several WebSockets",
        "they count for the same {bytes_per_caller} and {bytes_in_all}",
        (
            _FRAMES + "TestBytes::test_messages_of_sockets_were_not_added_up",
            _FRAMES + "TestBytes::test_messages_that_were_not_complete_were_not_counted",
        ),
    ),
    Row(
        "{many_frames} tiny frames on a WebSocket: pings, continuation frames, messages",
        "{frames_burst} at once and {frames_rate} per second, then closed with `1008`",
        (_FRAMES + "TestFrames::test_frames_that_are_no_messages_were_not_counted",),
        attacks.tiny_frames,
    ),
    Row(
        "WebSocket text with an invalid encoding",
        "closed with `1007`, no traceback in the log",
        (_FRAMES + "TestLogs::test_a_message_that_is_no_text_was_logged_with_a_traceback",),
    ),
    Row(
        "messages in very many groups at once",
        "{turns_of_sender} of {turns} chat turns. The others wait",
        ("tests/inbox/test_worker.py::TestPlaces::test_one_person_in_many_groups_took_all_the_places",),
    ),
    Row(
        "slow turns in many conversations that are lost with their process",
        "{quarantined_once} s of the quarantine after the first loss, {quarantined} s after more. Senders take turns",
        (
            "tests/faults/test_events_in_quarantine.py::"
            "test_a_slow_turn_in_quarantine_delayed_all_others_for_as_long_as_it_took",
            "tests/inbox/test_isolation.py::"
            "test_the_conversations_of_one_sender_were_served_before_those_of_all_others",
        ),
    ),
    Row(
        "a search over many long messages",
        "{searched} messages per page of results, scanned in a thread in turn with other callers",
        ("tests/channels/web/test_search.py::test_a_search_in_long_messages_stopped_everybody",),
    ),
    Row(
        "answers that take long to render",
        "more than {rendered_here} characters are rendered in a thread, in turn with other callers. A block "
        "of more than {rendered_freely} characters is rendered less often",
        (
            "tests/faults/test_answers_that_took_long_to_render.py::"
            "test_an_answer_on_the_message_channel_stopped_everybody",
            "tests/chat/test_growing.py::test_the_whole_text_was_rendered_at_every_edit",
        ),
    ),
    Row(
        "very many files",
        "{file_bytes} per file and {owner_bytes} per owner in the file store",
        ("tests/stores/sql/test_files.py::test_what_has_no_room_stays_in_its_record",),
    ),
    Row(
        "small requests on histories of many values",
        "a history counts for the same {bytes_per_caller} and {bytes_in_all} before it is parsed, and {history_bytes} "
        "is the most for one. Chats and background runs wait",
        (
            "tests/faults/test_wide_histories.py::TestRequests::test_many_tiny_requests_on_wide_histories_were_all_let_in",
        ),
    ),
    Row(
        "lists of large items",
        "a page ends at {page_bytes}, files included, unless its only item is larger",
        (
            "tests/faults/test_lists_of_large_items.py::test_a_list_of_large_items_was_read_and_sent_whole",
            "tests/faults/test_lists_of_large_items.py::test_a_list_of_large_questions_was_read_and_sent_whole",
        ),
    ),
    Row(
        "very many records in the in-memory store",
        "the records of the owner with the most are evicted first",
        ("tests/stores/memory/test_store.py::test_whoever_made_thousands_of_records_made_those_of_others_go",),
    ),
    Row(
        "wrong link codes, from any number of accounts",
        "codes of others stay valid unless their prefix is known",
        ("tests/linkers/test_one_time_code.py::test_strangers_closed_linking_for_everybody",),
    ),
    Row(
        "{many_tools} tools in one request",
        "`400` above {tools} tools",
        ("tests/faults/test_tools_without_end.py::test_a_request_brings_only_so_many_tools",),
        attacks.many_tools,
    ),
    Row(
        "{readers} requests for endless streams that the client does not read",
        "{unsent_bytes} of unsent data per connection in the kernel. After {send_seconds} the run is cancelled and its "
        "session released",
        (
            _UNREAD + "test_a_reader_that_never_read_kept_its_session",
            _UNREAD + "test_little_was_kept_for_each_of_many_readers_that_never_read",
        ),
        attacks.unread_streams,
    ),
    Row(
        "{readers} requests for answers of {item_bytes} that the client does not read",
        "the answer is kept for {send_seconds}",
        (_UNREAD + "test_a_large_answer_that_nobody_read_stayed_for_ever",),
        attacks.unread_answers,
    ),
    Row(
        "open requests that start no run: endless bodies, streams of existing runs",
        "{running} at once, and {running} runs",
        (_WAITS + "test_readers_of_a_run_were_not_counted",),
    ),
    Row(
        "large bodies from a denied caller",
        "`403` before the body is parsed",
        (_WAITS + "test_a_large_body_was_parsed_for_somebody_who_may_not_come_in",),
    ),
    Row(
        "requests whose client disconnects",
        "the work for them is cancelled",
        (_WAITS + "test_what_was_read_for_a_client_went_on_after_it_had_left",),
    ),
    Row(
        "growing session state of an agent",
        "{session_bytes}, read and written in a thread. Then turns fail",
        ("tests/scenarios/test_what_can_be_stored.py::test_a_state_that_grew_too_large_froze_everybody",),
    ),
    Row(
        "a small turn in a conversation with {history} parts",
        "the items are decoded in a thread",
        (_WORK + "test_a_small_turn_in_a_wide_conversation_stopped_everybody",),
        attacks.wide_history,
    ),
    Row(
        "a stream that resumes a long run at its end",
        "{events} events per read, with other callers served in between",
        (_WORK + "test_a_long_run_was_read_again_without_a_pause",),
    ),
]
TABLES = {"strangers": STRANGERS, "callers": CALLERS}


def render(text: str, results: dict[str, Any]) -> str:
    """Return the page with the generated parts replaced."""
    for name, rows in TABLES.items():
        lines = ["| request | limit | measured | test |", "|---|---|---|---|"]
        for row in rows:
            tests = ", ".join(f"`{test}`" for test in row.tests)
            cells = [
                row.sends.format(**VALUES),
                row.limit.format(**VALUES),
                _format_measured(results.get(row.name)),
                tests,
            ]
            lines.append("| " + " | ".join(cells) + " |")
        text = _replace(text, name, "\n".join(lines))
    return _replace(text, "setup", _setup(results))


def blocks(text: str) -> list[str]:
    """Return the names of the generated parts of a page."""
    return re.findall(r"<!-- make figures: (\w+) -->", text)


def without_blocks(text: str) -> str:
    """Return a page without its generated parts."""
    return re.sub(r"<!-- make figures: (\w+) -->.*?<!-- end -->", "", text, flags=re.DOTALL)


def _replace(text: str, name: str, body: str) -> str:
    begin = f"<!-- make figures: {name} -->"
    before, _, rest = text.partition(begin)
    assert rest, f"the page has no part {name}"
    return f"{before}{begin}\n\n{body}\n\n{rest[rest.index('<!-- end -->') :]}"


def _setup(results: dict[str, Any]) -> str:
    idle = [found["idle_mib"] for found in results.values()]
    looks = timeouts._CHECKS_PER_TIMEOUT
    lines = [
        f"A timer is checked {looks} times per limit, so a connection stays open for up to {1 / looks:.0%} longer."
    ]
    if idle:
        lines.append(
            f"Before its attack, the host of a measurement has {_number(min(idle))} to {_number(max(idle))} MiB."
        )
    return "\n".join(lines)


def _format_measured(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    kinds: dict[str, list[float]] = found["answers"]
    total = sum(int(count) for count, _, _ in kinds.values())
    said = [
        (f"{count:,.0f} × " if count != total else "") + _answer(name) + f" after {_span(first, last)}"
        for name, (count, first, last) in kinds.items()
    ]
    memory = f"{_number(found['mib'])} MiB" if found["mib"] >= 1 else "less than one MiB"
    cost = [*said, memory, f"others wait {_time(found['wait'])}"]
    if found["failed"]:
        cost.append(f"others are refused for {_time(found['failed'])}")
    return ", ".join(cost)


def _answer(name: str) -> str:
    status, _, end = name.rpartition(", ")
    return f"`{status}` and {end}" if status else name if name in (CLOSED, OPEN) else f"`{name}`"


def _span(first: float, last: float) -> str:
    return _time(last) if last < 1.05 * first or last < 1 else f"{_time(first)} to {_time(last)}"


def _time(seconds: float) -> str:
    return f"{_number(seconds)} s" if seconds >= 1 else f"{max(1.0, float(_number(seconds * 1000))):g} ms"


def _number(value: float) -> str:
    """Return two significant digits: a measurement has no more."""
    return f"{float(f'{value:.2g}'):g}"
