"""The contract of chat channels for intake: forged bodies, and an unavailable platform."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from frontdesk.access.allowlists import LinkedClaimAllowlist, NativeIdAllowlist
from frontdesk.clock import SystemClock
from frontdesk.interfaces.hooks import Feedback
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.operations import EventLimits, RateLimit
from frontdesk_testing.agents import EchoAgent
from frontdesk_testing.chat_driver import Chat, ChatDriver
from frontdesk_testing.chat_platform import InvokingPlatform, OpeningPlatform, RatingPlatform

_HOUR = 3_600.0
_LIMIT = 20_000


async def _post(chat: Chat, body: bytes, headers: Mapping[str, str]) -> int:
    sent = {"content-type": "application/json", **headers}
    return (await chat.client.http.post(chat.webhook, content=body, headers=sent)).status_code


class WebhookBodies(ChatDriver):
    """Bodies of webhook requests."""

    async def test_only_what_the_platform_has_signed_is_taken(self) -> None:
        agent = EchoAgent()
        async with self.chat(agent, max_body_bytes=_LIMIT) as chat:
            eve, now = await chat.platform.person("Eve"), SystemClock().now()
            body, other = chat.platform.event(eve, "let me in"), chat.platform.event(eve, "something else")
            right, large = chat.platform.signed(body, at=now), chat.platform.event(eve, "x" * (_LIMIT + 1))
            assert await _post(chat, body, {}) in self.refused_statuses
            if self.signs_bodies:
                assert await _post(chat, other, right) == 401
            for name in right:
                assert await _post(chat, body, {**right, name: ""}) in self.refused_statuses, name
                assert await _post(chat, body, {**right, name: "nonsense"}) in self.refused_statuses, name
            for at in (now - _HOUR, now + _HOUR) if self.signs_times else ():
                assert await _post(chat, body, chat.platform.signed(body, at=at)) == 401
            assert await _post(chat, large, chat.platform.signed(large, at=now)) == 413
            for text in (b"", b"{", b"[]", b"nonsense", b'{"id": 7}'):
                assert await _post(chat, text, chat.platform.signed(text, at=now)) == self.unreadable_status, text
            assert agent.seen == []
            assert await _post(chat, body, right) == 200
            assert await chat.texts(eve.chat_id, 1) == ["let me in"]
            # A copy changes nothing.
            assert await _post(chat, body, right) == 200
            assert await chat.say_last_and_list(eve) == ["let me in", "the last word"]

    async def test_a_platform_that_is_away_at_the_start_is_asked_again(self) -> None:
        async with self.platform() as platform:
            await platform.go_away(times=2)
            async with self.chat(platform=platform) as chat:
                ada = await platform.person("Ada")
                await platform.say(ada, "hello")
                assert await chat.texts(ada.chat_id, 1) == ["hello"]

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    async def test_other_methods_are_refused(self, method: str) -> None:
        if method == "GET" and self.has_handshake:
            pytest.skip("the platform asks so whether it is the right webhook")
        async with self.chat() as chat:
            answer = await chat.client.http.request(method, chat.webhook)
            assert answer.status_code == 405


class Invokes(ChatDriver):
    """Events whose HTTP response is the answer, and claims that come with events."""

    async def test_an_invoke_is_answered_in_its_response_and_not_stored(self) -> None:
        agent = EchoAgent()
        async with self._open_invoking(agent) as (chat, platform):
            ada = await platform.person("Ada")
            first = await platform.invoke(ada, self.invoke_name)
            assert first[0] == 200
            assert await platform.invoke(ada, self.invoke_name) == first
            assert await chat.say_last_and_list(ada) == ["the last word"]
            assert len(agent.seen) == 1

    async def test_an_unknown_invoke_is_not_implemented(self) -> None:
        async with self._open_invoking() as (_, platform):
            status, _ = await platform.invoke(await platform.person("Ada"), "nothing of the kind")
            assert status == 501

    async def test_an_invoke_of_a_stranger_is_refused(self) -> None:
        async with self._open_invoking() as (_, platform):
            right = await platform.invoke(await platform.person("Ada"), self.invoke_name)
        async with self._open_invoking(allowlist=NativeIdAllowlist(["somebody else"])) as (_, platform):
            assert await platform.invoke(await platform.person("Eve"), self.invoke_name) != right

    async def test_an_invoke_is_limited_like_other_events(self) -> None:
        async with self._open_invoking(event_limits=EventLimits(per_caller=RateLimit(1, per_seconds=3600.0))) as (
            _,
            platform,
        ):
            ada, bob = await platform.person("Ada"), await platform.person("Bob")
            assert (await platform.invoke(ada, self.invoke_name))[0] == 200
            assert (await platform.invoke(ada, self.invoke_name))[0] == 429
            assert (await platform.invoke(bob, self.invoke_name))[0] == 200

    async def test_verified_claims_of_a_person_decide_on_access(self) -> None:
        async with self.platform() as platform:
            ada, eve = await platform.person("Ada"), await platform.person("Eve")
            claims = self.list_verified_claims(ada)
            if not claims:
                pytest.skip("the platform proves no claims")
            name, value = next(iter(claims.items()))
            assert self.list_verified_claims(eve)[name] != value
            async with self.chat(platform=platform, allowlist=LinkedClaimAllowlist(name, [value])) as chat:
                await platform.say(ada, "hello")
                await chat.until_shown(ada.chat_id, "hello")
                await platform.say(eve, "hello")
                assert await chat.texts(eve.chat_id, 1) != ["hello"]

    async def test_feedback_is_tied_to_the_run_of_its_message(self) -> None:
        if not self.has_feedback:
            pytest.skip("nobody rates answers on the platform")
        given: list[Feedback] = []
        async with self.chat(feedback_hook=given.append) as chat:
            platform = cast("RatingPlatform", chat.platform)
            ada, eve = await platform.person("Ada"), await platform.person("Eve")
            await platform.say(ada, "hello")
            (shown,) = await chat.until_shown(ada.chat_id, "hello")
            await chat.until(lambda: _is_sent(chat))
            first = await platform.rate(ada, shown, "up")
            await platform.repeat(first)
            # Somebody else, who was not answered by it.
            await platform.rate(eve, shown, "down")
            await platform.rate(ada, shown, "down")
            assert await chat.say_last_and_list(ada) == ["hello", "the last word"]
            await chat.until(lambda: _has(given, 2))
            assert [feedback.value for feedback in given] == ["up", "down"]
            assert {feedback.identity.native_id for feedback in given} == {ada.id}
            lines = await chat.store.audit.lines(subject=given[0].run_id)
            assert [(line.action, line.reason) for line in lines] == [("feedback", "up"), ("feedback", "down")]

    async def test_a_direct_chat_that_opens_is_kept_and_one_that_closes_forgotten(self) -> None:
        if not self.opens_chats:
            pytest.skip("the platform does not say that a chat opens")
        async with self.chat() as chat:
            platform = cast("OpeningPlatform", chat.platform)
            ada = await platform.person("Ada")
            identity = ChannelIdentity(channel=chat.channel.name, native_id=ada.id)
            await platform.repeat(await platform.open(ada))
            assert await chat.channel.context.storage.get_reference(identity)
            await platform.repeat(await platform.close(ada))
            assert not await chat.channel.context.storage.get_reference(identity)
        async with self.chat(allowlist=NativeIdAllowlist(["somebody else"])) as chat:
            platform = cast("OpeningPlatform", chat.platform)
            eve = await platform.person("Eve")
            await platform.repeat(await platform.open(eve))
            identity = ChannelIdentity(channel=chat.channel.name, native_id=eve.id)
            assert not await chat.channel.context.storage.get_reference(identity)

    @asynccontextmanager
    async def _open_invoking(
        self, target: EchoAgent | None = None, **settings: Any
    ) -> AsyncGenerator[tuple[Chat, InvokingPlatform]]:
        if not self.invoke_name:
            pytest.skip("the platform has no events that are answered at once")
        async with self.chat(target, **settings) as chat:
            yield chat, cast("InvokingPlatform", chat.platform)


async def _is_sent(chat: Chat) -> bool:
    return bool(await chat.deliveries("accepted"))


async def _has(given: list[Feedback], count: int) -> bool:
    return len(given) >= count
