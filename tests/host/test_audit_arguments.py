"""Wrong types of arguments are findings in one error, not crashes (AUDIT 284)."""

from typing import Any

import pytest
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from frontdesk import AgentFrameworkHost, ChannelConfigurationError
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk_testing import EchoAgent, serving

TOKEN = "4839574812:AAFD39kkdpWt3ywyRZergyOLMaJhac60qcK"


def findings_of(*channels: Any, **settings: Any) -> list[str]:
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(EchoAgent(), channels=channels or [InvocationsChannel()], **settings)
    return list(caught.value.findings)


def sync() -> None:
    """Start nothing."""


def test_audit_284_all_mistakes_are_in_one_error() -> None:
    channels: list[Any] = [
        ResponsesChannel(sockets=False, forward="model"),  # pyright: ignore[reportArgumentType]
        ChatCompletionsChannel(path=None),  # pyright: ignore[reportArgumentType]
    ]
    given: Any = {
        "runner": object(),
        "middleware": [object],
        "clock": "x",
        "active_window_seconds": "a",
        "max_background_runs": "a",
        "on_startup": [sync],
    }
    assert findings_of(*channels, **given) == [
        "runner: object has no register; give a task runner, such as ProcrastinateTaskRunner(store)",
        "clock: str has no now; give one with now() and steady(), or leave it out",
        "middleware: object is not a starlette.middleware.Middleware(...); write Middleware(cls, **options)",
        "on_startup: sync is not an async function; write `async def`",
        "active_window_seconds must be a number, got str",
        "max_background_runs must be a whole number, got str",
        "channel 'responses': sockets must be SocketLimits, got bool",
        "channel 'responses': forward: got one string, put it into a list: ['model']",
        "channel 'chat_completions': path must be a string, got NoneType",
    ]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"store": object()}, "store: object has no transaction; give a store, such as SqliteStateStore(path)"),
        ({"ids": "x"}, "ids: str has no new; give one with new(prefix), or leave it out"),
        ({"middleware": 7}, "middleware must be a list of starlette.middleware.Middleware(...), got int"),
        ({"on_startup": sync}, "on_startup must be a list of async functions, got function"),
        ({"on_shutdown": [7]}, "on_shutdown: int is not an async function; write `async def`"),
        ({"shutdown_grace_seconds": None}, "shutdown_grace_seconds must be a number, got NoneType"),
        ({"max_session_bytes": 1.5}, "max_session_bytes must be a whole number, got float"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_audit_284_an_argument_of_the_host(settings: Any, told: str) -> None:
    assert findings_of(**settings) == [told]


@pytest.mark.parametrize(
    ("kind", "settings", "told"),
    [
        (ResponsesChannel, {"name": 5}, "name must be a string, got int"),
        (ResponsesChannel, {"max_body_bytes": "x"}, "max_body_bytes must be a whole number, got str"),
        (
            ResponsesChannel,
            {"allowed_origins": "https://a.example"},
            "allowed_origins: got one string, put it into a list",
        ),
        (ChatCompletionsChannel, {"keep_alive": "x"}, "keep_alive must be a number, got str"),
        (InvocationsChannel, {"body_timeout": None}, "body_timeout must be a number, got NoneType"),
        (ConversationsChannel, {"max_body_bytes": "x"}, "max_body_bytes must be a whole number, got str"),
        (WebChatChannel, {"keep_days": "x"}, "keep_days must be a number, got str"),
        (TelegramChannel, {"live_terms": "x"}, "live_terms must be LiveTerms, got str"),
        (TelegramChannel, {"push_terms": "x"}, "push_terms must be PushTerms or None, got str"),
        (TelegramChannel, {"commands": ["start"]}, "commands must be a list of ChannelCommand, got list"),
        (TelegramChannel, {"poll_seconds": "x"}, "poll_seconds must be a number, got str"),
        (TelegramChannel, {"path": None}, "path must be a string, got NoneType"),
    ],
)
def test_audit_284_an_argument_of_a_channel(kind: Any, settings: Any, told: str) -> None:
    needed = {"bot_token": TOKEN} if kind is TelegramChannel else {}
    channel = kind(**needed, **settings)
    assert f"channel {channel.name!r}: {told}" in "\n".join(findings_of(channel))


def test_audit_284_an_argument_that_has_no_default_is_refused_at_once() -> None:
    with pytest.raises(ChannelConfigurationError, match="bot_token must be a string or Secret, got int"):
        TelegramChannel(bot_token=5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="nope"):
        TelegramChannel(bot_token=TOKEN, nope=1)  # pyright: ignore[reportCallIssue]


async def test_audit_284_what_can_be_awaited_is_still_taken() -> None:
    began: list[str] = []

    async def work(name: str) -> None:
        began.append(name)

    class Opener:
        async def __call__(self) -> None:
            await work("object")

        async def open(self) -> None:
            await work("method")

    def annotated() -> Any:
        return work("annotated")

    async def plain() -> None:
        await work("plain")

    callbacks: list[Any] = [plain, lambda: work("lambda"), annotated, Opener(), Opener().open]
    middleware = (Middleware(GZipMiddleware),)
    host = AgentFrameworkHost(
        EchoAgent(),
        channels=[InvocationsChannel()],
        on_startup=callbacks,
        middleware=middleware,
        shutdown_grace_seconds=1,
    )
    async with serving(host):
        assert began == ["plain", "lambda", "annotated", "object", "method"]
