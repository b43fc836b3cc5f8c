"""What follows from each refusal of the Bot API."""

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.channels.telegram.client import ChatMigratedError, read_answer
from frontdesk.errors import (
    PushError,
    PushLimitedError,
    PushNotEditableError,
    PushNotModifiedError,
    PushRefusedError,
)
from frontdesk.outbound.platform import PlatformResponse


def read_refusal(status: int, description: str, **parameters: int) -> PushError:
    body = {"ok": False, "error_code": status, "description": description, "parameters": parameters}
    with pytest.raises(PushError) as caught:
        read_answer(PlatformResponse(status, {}, msgspec.json.encode(body)))
    return caught.value


@pytest.mark.parametrize(
    ("status", "description", "kind", "code"),
    [
        (403, "Forbidden: bot was blocked by the user", PushRefusedError, "blocked"),
        (403, "Forbidden: user is deactivated", PushRefusedError, "user_deactivated"),
        (403, "Forbidden: bot can't initiate conversation with a user", PushRefusedError, "not_started"),
        (403, "Forbidden: bot was kicked from the supergroup chat", PushRefusedError, "kicked"),
        (403, "Forbidden: bot is not a member of the channel chat", PushRefusedError, "kicked"),
        (403, "Forbidden: bot can't send messages to bots", PushRefusedError, "is_bot"),
        (400, "Bad Request: chat not found", PushRefusedError, "chat_not_found"),
        (400, "Bad Request: not enough rights to send text messages to the chat", PushRefusedError, "no_rights"),
        (400, "Bad Request: CHAT_WRITE_FORBIDDEN", PushRefusedError, "no_rights"),
        (400, "Bad Request: message thread not found", PushRefusedError, "thread_not_found"),
        (400, "Bad Request: TOPIC_CLOSED", PushRefusedError, "topic_closed"),
        (400, "Bad Request: message to be replied not found", PushRefusedError, "reply_not_found"),
        (400, "Bad Request: PHOTO_INVALID_DIMENSIONS", PushRefusedError, "media_refused"),
        (400, "Bad Request: BUTTON_DATA_INVALID", PushRefusedError, "button_invalid"),
        (413, "Request Entity Too Large", PushRefusedError, "status_413"),
        (400, "Bad Request: message is not modified: specified new message content …", PushNotModifiedError, None),
        (400, "Bad Request: message to edit not found", PushNotEditableError, "message_not_found"),
        (400, "Bad Request: message to delete not found", PushNotEditableError, "message_not_found"),
        (400, "Bad Request: MESSAGE_ID_INVALID", PushNotEditableError, "message_not_found"),
        (400, "Bad Request: message can't be edited", PushNotEditableError, "not_editable"),
        (400, "Bad Request: message can't be deleted for everyone", PushNotEditableError, "not_editable"),
        (
            400,
            "Bad Request: query is too old and response timeout expired or query ID is invalid",
            PushRefusedError,
            "query_too_old",
        ),
        (400, "Bad Request: something that nobody has heard of", PushRefusedError, "status_400"),
        (404, "Not Found: method not found", PushRefusedError, "status_404"),
    ],
)
def test_a_refusal_has_the_code_that_says_what_to_do(
    status: int, description: str, kind: type[PushError], code: str | None
) -> None:
    error = read_refusal(status, description)
    assert type(error) is kind
    assert error.permanent
    assert error.code == (code or kind.code)
    assert description.partition(": ")[2] not in str(error) or not description.partition(": ")[2]


@pytest.mark.parametrize(("status", "description"), [(401, "Unauthorized"), (404, "Not Found")])
def test_a_wrong_token_stops_the_whole_channel_and_loses_nothing(status: int, description: str) -> None:
    error = read_refusal(status, description)
    assert (error.code, error.permanent, error.unknown, error.everywhere) == ("unauthorized", False, False, True)
    assert error.retry_after == 60.0


def test_two_pollers_and_a_webhook_are_two_conflicts() -> None:
    second = read_refusal(409, "Conflict: terminated by other getUpdates request; make sure that only one …")
    webhook = read_refusal(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook …")
    assert (second.code, webhook.code) == ("conflict", "webhook_active")
    assert not second.permanent
    assert not webhook.permanent


def test_a_migrated_group_says_where_it_went() -> None:
    error = read_refusal(
        400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=-1001234567890
    )
    assert isinstance(error, ChatMigratedError)
    assert error.chat_id == -1001234567890
    assert not error.permanent


@pytest.mark.parametrize(("asked", "wait"), [(35, 35.0), (0, 0.0), (-4, 1.0), (10**9, 86_400.0)])
def test_a_flood_waits_as_long_as_the_platform_says(asked: int, wait: float) -> None:
    error = read_refusal(429, f"Too Many Requests: retry after {asked}", retry_after=asked)
    assert isinstance(error, PushLimitedError)
    assert error.retry_after == wait


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_server_error_may_be_tried_again(status: int) -> None:
    error = read_refusal(status, "Internal Server Error: restart")
    assert (type(error), error.permanent, error.unknown) == (PushError, False, False)


@given(status=st.integers(200, 599), body=st.binary() | st.from_regex(rb'\{"ok":(true|false|1)[^}]*\}'))
def test_any_response_is_a_result_or_a_push_error(status: int, body: bytes) -> None:
    with suppress(PushError):
        read_answer(PlatformResponse(status, {}, body))
