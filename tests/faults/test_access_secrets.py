"""Access by secrets: empty ones, missing and replayed signatures, and comparisons that told how far one came."""

import ast
import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk import AgentFrameworkHost, ApiKeyAuth, BearerAuth, ChannelConfigurationError, HmacAuth, Secret
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import EchoAgent, FakeClock, messages, serving
from frontdesk_testing.messages import MessageChannel

ROOT = Path(__file__).parents[2] / "src/frontdesk"
SECRET = "the-secret-of-the-machine"
BODY = b'{"message": "hello"}'

EMPTY: dict[str, Callable[[], Any]] = {
    "an API key": lambda: ApiKeyAuth({"admin": ""}),
    "one of two API keys": lambda: ApiKeyAuth({"admin": ["a-key-that-is-long", ""]}),
    "all API keys": lambda: ApiKeyAuth({}),
    "all keys of somebody": lambda: ApiKeyAuth({"admin": []}),
    "the hash of an API key": lambda: ApiKeyAuth({"admin": "sha256:"}),
    "the key that was hashed": lambda: ApiKeyAuth({"admin": ["a-key-that-is-long", ApiKeyAuth.hash("")]}),
    "the name of a principal": lambda: ApiKeyAuth({"": "a-key-that-is-long"}),
    "an HMAC secret": lambda: HmacAuth({"admin": ""}),
    "an HMAC secret, wrapped": lambda: HmacAuth({"admin": Secret("")}),
    "all HMAC secrets": lambda: HmacAuth({}),
    "the audience": lambda: BearerAuth(issuer="https://login.example", audience=""),
    "all audiences": lambda: BearerAuth(issuer="https://login.example", audience=[]),
    "the issuer": lambda: BearerAuth(issuer="", audience="api://concierge"),
    "the list of auths": lambda: AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel(auth=[])]),
    "the secret of a webhook": lambda: AgentFrameworkHost(
        EchoAgent(), channels=[MessageChannel(platform_url="http://127.0.0.1:1", token="a-token", secret="")]
    ),
}


@pytest.mark.parametrize("make", EMPTY.values(), ids=EMPTY)
def test_an_empty_secret_made_everyone_admin(make: Callable[[], Any]) -> None:
    with pytest.raises((ValueError, TypeError, ChannelConfigurationError)) as caught:
        make()
    assert str(caught.value)


NOTHING = [
    {},
    {"x-api-key": ""},
    {"api-key": ""},
    {"authorization": "Bearer"},
    {"authorization": ""},
    {"x-signature": "", "x-signature-principal": ""},
]


@pytest.mark.parametrize("headers", NOTHING, ids=str)
async def test_empty_credentials_were_those_of_somebody(headers: dict[str, str]) -> None:
    agent = EchoAgent()
    auth = [ApiKeyAuth({"admin": "a-key-that-is-long"}), HmacAuth({"machine": SECRET}, max_ahead_seconds=0)]
    async with serving(AgentFrameworkHost(agent, channels=[InvocationsChannel(auth=auth)])) as client:
        refused = await client.http.post("/invocations", json={"message": "hello"}, headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthenticated")
    assert agent.seen == []


def _sign(auth: HmacAuth, **changes: Any) -> dict[str, str]:
    """The headers of a good request, but for what is changed afterwards."""
    signed = auth.sign("machine", "POST", "/invocations", BODY, timestamp=changes.pop("timestamp", None))
    headers = {**signed, "content-type": "application/json", **changes}
    return {name: value for name, value in headers.items() if value is not None}


async def _post(client: httpx.AsyncClient, headers: dict[str, str], body: bytes = BODY) -> tuple[int, str]:
    answer = await client.post("/invocations", content=body, headers=headers)
    return answer.status_code, (answer.json()["error"] or {}).get("code", "")


MISSING = ("x-signature", "x-signature-principal", "x-signature-timestamp", "x-signature-nonce", "x-content-sha256")
ALTERED = {
    "x-signature": "v2=" + "0" * 64,
    "x-signature-principal": "somebody",
    "x-signature-timestamp": "1",
    "x-signature-nonce": "another-nonce",
    "x-content-sha256": "0" * 64,
}


@pytest.mark.parametrize("header", MISSING)
@pytest.mark.parametrize("change", ["missing", "altered"])
async def test_a_missing_signature_was_accepted(header: str, change: str) -> None:
    auth, agent = HmacAuth({"machine": SECRET}, max_ahead_seconds=0), EchoAgent()
    async with serving(AgentFrameworkHost(agent, channels=[InvocationsChannel(auth=auth)])) as client:
        value = None if change == "missing" else ALTERED[header]
        assert (await _post(client.http, _sign(auth, **{header: value})))[0] == 401
        assert (await _post(client.http, _sign(auth)))[0] == 200
    assert len(agent.seen) == 1


async def test_a_signature_for_other_words_was_accepted() -> None:
    auth, agent = HmacAuth({"machine": SECRET}, max_ahead_seconds=0), EchoAgent()
    async with serving(AgentFrameworkHost(agent, channels=[InvocationsChannel(auth=auth)])) as client:
        assert (await _post(client.http, _sign(auth), b'{"message": "other words"}'))[0] == 401
        assert (await _post(client.http, _sign(auth), b""))[0] == 401
    assert agent.seen == []


async def test_a_replayed_signature_was_accepted() -> None:
    clock = FakeClock()
    auth, agent = HmacAuth({"machine": SECRET}, clock=clock, max_ahead_seconds=0), EchoAgent()
    async with serving(AgentFrameworkHost(agent, channels=[InvocationsChannel(auth=auth)])) as client:
        headers = _sign(auth)
        assert (await _post(client.http, headers))[0] == 200
        assert await _post(client.http, headers) == (401, "signature_replayed")
        for seconds in (299, 2, 300, 3600):
            clock.advance(seconds)
            assert (await _post(client.http, headers))[0] == 401
    # A host that was started anew has forgotten what it saw, so it takes nothing from before.
    again = HmacAuth({"machine": SECRET}, clock=clock, max_ahead_seconds=0)
    clock.jump(-3600)
    async with serving(AgentFrameworkHost(agent, channels=[InvocationsChannel(auth=again)])) as client:
        assert (await _post(client.http, headers))[0] == 401
    assert len(agent.seen) == 1


def test_secrets_were_compared_in_a_way_that_leaks_time() -> None:
    """Whatever is called a secret is compared by `compare_digest`, or looked up by its hash."""
    telling = {"secret", "signature", "token", "digest", "seal", "mac", "expected", "presented"}
    found: list[str] = []
    # The fake platform and the contracts have nobody to protect.
    for path in sorted([*ROOT.rglob("*.py"), *Path(str(messages.__file__)).parent.glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Compare) and any(isinstance(one, (ast.Eq, ast.NotEq)) for one in node.ops):
                sides = [node.left, *node.comparators]
                names = {_name(side) for side in sides if not isinstance(side, ast.Constant)}
                if names & telling and not any(isinstance(side, ast.Constant) for side in sides):
                    found.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
    assert not found, "\n".join(found)


def _name(node: ast.expr) -> str:
    """The last word of a name."""
    text = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return text.rpartition("_")[2]


@pytest.mark.parametrize("kind", ["api key", "hmac"])
async def test_a_wrong_secret_was_compared_byte_by_byte(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[Any, Any]] = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    auth: Any = (
        ApiKeyAuth({"admin": "a-key-that-is-long"})
        if kind == "api key"
        else HmacAuth({"machine": SECRET}, max_ahead_seconds=0)
    )
    headers = {"x-api-key": "a-key-that-is-lonG"} if kind == "api key" else _sign(auth, **{"x-signature": "v2=00"})
    async with serving(AgentFrameworkHost(EchoAgent(), channels=[ResponsesChannel(auth=auth)])) as client:
        sent = {"content-type": "application/json", **headers}
        assert (await client.http.post("/v1/responses", content=BODY, headers=sent)).status_code == 401
    assert len(compared) == 1
