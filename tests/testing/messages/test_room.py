"""The channel is a room like every other, so that it can be copied."""

import ast
from pathlib import Path

import pytest

from frontdesk import ChannelConfigurationError
from frontdesk.host.host import AgentFrameworkHost
from frontdesk.interfaces.channel import ChannelPush
from frontdesk.interfaces.context import AnswersEvents
from frontdesk_testing import EchoAgent
from frontdesk_testing import messages as package
from frontdesk_testing.messages import MessageChannel

HERE = Path(str(package.__file__)).parent
FILES = {"__init__", "channel", "config", "parse", "render", "wire"}
EXTRAS = {"client", "verify"}
# What a real platform's own library does.
OURS = {"connections"}
MAY = (
    *(
        "frontdesk.interfaces",
        "frontdesk.models",
        "frontdesk.serialization",
        "frontdesk.errors",
        "frontdesk.identifiers",
    ),
    *(
        "frontdesk.asgi",
        "frontdesk.auth",
        "frontdesk.chat",
        "frontdesk.framework",
        "frontdesk.http",
        "frontdesk.markdown",
    ),
    *("frontdesk.outbound", "frontdesk.secret", "frontdesk.concurrency", "frontdesk_testing.messages."),
)


def test_it_has_the_files_of_a_room() -> None:
    assert {path.stem for path in HERE.glob("*.py")} == FILES | EXTRAS | OURS | {"__main__"}


@pytest.mark.parametrize("name", sorted((FILES - {"__init__"}) | EXTRAS | OURS))
def test_it_imports_what_a_channel_may(name: str) -> None:
    tree = ast.parse((HERE / f"{name}.py").read_bytes())
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
    ours = {one for one in modules if one.startswith("frontdesk")}
    assert {one for one in ours if not one.startswith(MAY)} == set()
    assert {one for one in ours if one.startswith("frontdesk_testing.messages.platform")} == set()


def channel(**settings: object) -> MessageChannel:
    given = {"platform_url": "http://127.0.0.1:1", "token": "a token", "secret": "a secret that is long", **settings}
    return MessageChannel(**given)  # pyright: ignore[reportArgumentType]


def test_it_can_do_what_a_message_channel_can() -> None:
    assert isinstance(channel(), ChannelPush)
    assert isinstance(channel(), AnswersEvents)
    assert channel().session_family == "host_tracked"


@pytest.mark.parametrize(
    ("settings", "finding"),
    [
        ({"secret": ""}, "secret must have 16 characters"),
        ({"secret": "short"}, "secret must have 16 characters"),
        ({"token": ""}, "token must not be empty"),
        ({"platform_url": "ftp://x"}, "platform_url"),
        ({"intake": "pigeon"}, "transport must be"),
        ({"intake": "polling", "public_url": "http://x"}, "public_url has no effect"),
        ({"on_edit": "later"}, "on_edit must be"),
        ({"text_limit": 0}, "text_limit must be positive"),
        ({"call_timeout": 0}, "call_timeout must be positive"),
    ],
)
def test_what_is_wrong_is_found_at_build(settings: dict[str, object], finding: str) -> None:
    with pytest.raises(ChannelConfigurationError, match=finding):
        AgentFrameworkHost(EchoAgent(), channels=[channel(**settings)])


def test_secrets_do_not_show() -> None:
    told = repr(vars(channel())) + repr(channel()._config)
    assert "a token" not in told
    assert "a secret that is long" not in told
