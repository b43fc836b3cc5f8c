"""Hooks are called in both forms, get copies, and fail in words that may be shown."""

import logging
from typing import Any

import pytest
from agent_framework import AgentResponse, AgentResponseUpdate, Content, Message

from frontdesk.errors import ForbiddenError, HookError
from frontdesk.hooks import call_run_hook, call_stream_hook, show_result
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.hooks import ChannelResponseContext
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import RunRecord

REQUEST = ChannelRequest(channel="web", input="hello")
RUN = RunRecord(run_id="run_1", owner="alice", channel="web", status="completed", created_at=0.0)
CONTEXT = ChannelResponseContext(
    request=REQUEST,
    channel_name="web",
    destination_identity=ChannelIdentity(channel="web", native_id="alice"),
    originating=True,
)


def result() -> HostedRunResult[Any]:
    return HostedRunResult(result=AgentResponse(messages=[Message("assistant", ["secret"])]), run=RUN)


async def show(hook: Any, result: HostedRunResult[Any]) -> HostedRunResult[Any]:
    """Return a result as a channel with a response hook shows it."""

    class Web(Channel):
        name = "web"
        response_hook = staticmethod(hook)

        def contribute(self, context: Any) -> Any:
            raise NotImplementedError

    return await show_result(Web(), result, REQUEST, CONTEXT.destination_identity)


async def call_each(hook: Any) -> Any:
    """Calls a hook that takes whatever it gets, in each of the three places."""
    return [
        await call_run_hook(hook, REQUEST, target=None, protocol_request=None),
        await show(hook, result()),
        await call_stream_hook(hook, AgentResponseUpdate(contents=[]), "web"),
    ]


async def test_run_hooks_get_the_request_the_target_and_what_came_over_the_wire() -> None:
    def sync(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
        return request.replace(input=[request.input, target, protocol_request])

    async def asynchronous(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
        return sync(request, target=target, protocol_request=protocol_request)

    for hook in (sync, asynchronous):
        changed = await call_run_hook(hook, REQUEST, target="target", protocol_request="wire")
        assert changed.input == ["hello", "target", "wire"]


async def test_response_hooks_get_a_copy() -> None:
    original = result()

    def sync(result: HostedRunResult[Any], *, context: ChannelResponseContext) -> HostedRunResult[Any]:
        assert context == CONTEXT
        result.result.messages[0].contents[0].text = "changed"
        return result

    async def asynchronous(result: HostedRunResult[Any], *, context: ChannelResponseContext) -> HostedRunResult[Any]:
        return sync(result, context=context)

    for hook in (sync, asynchronous):
        changed = await show(hook, original)
        assert changed.result.text == "changed"
        assert original.result.text == "secret"


async def test_stream_hooks_get_a_copy_and_may_drop_it() -> None:
    original = AgentResponseUpdate(contents=[Content.from_text("secret")])

    def sync(update: Any) -> Any:
        update.contents[0].text = "changed"
        return update

    async def asynchronous(update: Any) -> Any:
        return sync(update)

    for hook in (sync, asynchronous):
        assert (await call_stream_hook(hook, original, "web")).text == "changed"
        assert original.text == "secret"
    assert await call_stream_hook(lambda update: None, original, "web") is None


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_what_a_hook_raises_reaches_the_log_only(asynchronous: bool, caplog: pytest.LogCaptureFixture) -> None:
    def sync(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the secret reason")

    async def later(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the secret reason")

    hook: Any = later if asynchronous else sync
    calls = {
        "run_hook": call_run_hook(hook, REQUEST, target=None, protocol_request=None),
        "response_hook": show(hook, result()),
        "stream_transform_hook": call_stream_hook(hook, AgentResponseUpdate(contents=[]), "web"),
    }
    for name, call in calls.items():
        caplog.clear()
        with caplog.at_level(logging.ERROR), pytest.raises(HookError) as caught:
            await call
        assert caught.value.param == name
        assert caught.value.status == 422
        assert "secret" not in caught.value.message
        assert "the secret reason" in caplog.text
        assert name in caplog.text


async def test_a_hook_may_refuse_in_its_own_words() -> None:
    def hook(*_: Any, **__: Any) -> Any:
        raise ForbiddenError("Not today.")

    with pytest.raises(ForbiddenError, match="Not today"):
        await call_each(hook)


@pytest.mark.parametrize("returned", [None, "text", {"input": "x"}])
async def test_a_hook_that_returns_something_else_has_failed(returned: Any) -> None:
    with pytest.raises(HookError):
        await call_run_hook(lambda *_, **__: returned, REQUEST, target=None, protocol_request=None)
    with pytest.raises(HookError):
        await show(lambda *_, **__: returned, result())
