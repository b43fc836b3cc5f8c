"""The channel of Bot Service on the fake: streams, sizes, proactive messages, replies in the response, access."""

import base64
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import pytest
from agent_framework import AgentResponseUpdate, Content

from frontdesk import ChannelIdentity
from frontdesk.access.allowlists import LinkedClaimAllowlist, NativeIdAllowlist
from frontdesk.auth.platform_auth import PlatformAuth, TrustedEnvironment
from frontdesk.channels.activity import ActivityChannel, ClientSecret
from frontdesk.errors import ChannelConfigurationError
from frontdesk.host.host import AgentFrameworkHost
from frontdesk.interfaces.chat import LiveTerms
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import EchoAgent, GatedAgent, serving
from frontdesk_testing.activity import APP_ID, APP_SECRET, FakeActivity, Person, fake_activity
from frontdesk_testing.chat_driver import Chat, ChatDriver
from frontdesk_testing.chat_platform import FakePlatform
from tests.contracts.activity_platform import DrivenActivity, driven_activity

_LIVE = {"live": "auto", "live_terms": LiveTerms(interval=0.01, group=False)}


class _Says(EchoAgent):
    """Answers with one text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._said = text

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        yield AgentResponseUpdate(contents=[Content.from_text(self._said)], role="assistant")


class TestActivityChannel(ChatDriver):
    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        return driven_activity()

    def channel(self, platform: FakePlatform, **settings: Any) -> ActivityChannel:
        given = {"connector_url": _fake(platform).url, **settings}
        return ActivityChannel(app_id=APP_ID, credential=ClientSecret(APP_SECRET), **given)

    async def test_an_answer_is_one_stream_with_growing_numbers_and_its_final_message(self) -> None:
        agent = GatedAgent()
        async with self.chat(agent, **_LIVE) as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada")
            fake.say(ada, "one two three")
            await fake.until(lambda: [each.text for each in ada.chat.shown()] == ["one"])
            agent.release.set()
            await fake.until(lambda: _final(ada) == ["one two three"])
            (stream,) = ada.chat.streams.values()
            assert stream.state == "final"
            infos = [info for call in fake.calls if (info := _info(call.body)) is not None]
            numbers = [info["streamSequence"] for info in infos[:-1]]
            assert numbers == sorted(set(numbers))
            assert numbers[0] == 1
            assert infos[-1] == {"type": "streaminfo", "streamType": "final", "streamId": stream.id}

    async def test_a_stream_that_took_too_long_is_replaced_by_an_update(self) -> None:
        agent = GatedAgent()
        async with self.chat(agent, **_LIVE) as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada")
            fake.say(ada, "one two")
            await fake.until(lambda: [each.text for each in ada.chat.shown()] == ["one"])
            for stream in ada.chat.streams.values():
                stream.state = "timeout"
            agent.release.set()
            await fake.until(lambda: _final(ada) == ["one two"])
            assert len(ada.chat.messages) == 1
            assert [call.status for call in fake.calls if call.method == "PUT"] == [200]

    @pytest.mark.parametrize("channel", ["webchat", "msteams"])
    async def test_where_there_are_no_streams_the_answer_is_one_message(self, channel: str) -> None:
        async with self.chat(EchoAgent(), accept_in_group="all", **_LIVE) as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada", channel=channel)
            place = fake.group(ada) if channel == "msteams" else ada.chat
            fake.say(ada, "one two three", place=place)
            await fake.until(lambda: [each.text for each in place.shown()] == ["one two three"])
            assert place.streams == {}

    async def test_a_lost_final_message_is_repeated_as_an_update(self) -> None:
        agent = GatedAgent()
        async with self.chat(agent, **_LIVE) as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada")
            fake.say(ada, "one two")
            await agent.started.wait()
            await fake.until(lambda: [each.text for each in ada.chat.shown()] == ["one"])
            fake.drop_next("POST", acted=True)
            agent.release.set()
            await fake.until(lambda: _final(ada) == ["one two"])
            assert len(ada.chat.messages) == 1

    async def test_a_message_that_is_too_large_is_split_once_more(self) -> None:
        text = "word " * 1000
        async with self.chat(_Says(text)) as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada")
            fake.fail_next("POST", 413, "MessageSizeTooBig")
            fake.say(ada, "hello")
            await fake.until(lambda: len(ada.chat.shown()) == 2)
            assert "".join(each.text for each in ada.chat.shown()).split() == text.split()

    async def test_a_file_that_does_not_fit_is_named(self) -> None:
        data = base64.b64encode(b"x" * 20_000).decode()
        picture = Content.from_uri(f"data:application/zip;base64,{data}", media_type="application/zip")

        class Sends(EchoAgent):
            async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
                yield AgentResponseUpdate(contents=[picture], role="assistant")

        async with self.chat(Sends()) as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada")
            fake.say(ada, "hello")
            await fake.until(lambda: [each.text for each in ada.chat.shown()] == ["\\[application/zip\\]"])

    async def test_replies_are_in_the_response_if_they_are_expected_there(self) -> None:
        async with self.chat(EchoAgent()) as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada")
            activity = fake.activity(ada, "message", text="hello", deliveryMode="expectReplies")
            first = await fake.deliver(activity)
            assert [each["text"] for each in first.json()["activities"]] == ["hello"]
            assert (await fake.deliver(activity)).json() == first.json()
            assert ada.chat.shown() == []

    async def test_a_reply_that_takes_too_long_for_the_response_is_sent(self) -> None:
        agent = GatedAgent()
        async with self.chat(agent, reply_seconds=0.05) as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada")
            response = await fake.deliver(fake.activity(ada, "message", text="hello", deliveryMode="expectReplies"))
            assert response.json() == {"activities": []}
            agent.release.set()
            await fake.until(lambda: [each.text for each in ada.chat.shown()] == ["hello"])

    async def test_a_send_without_an_answer_is_unknown_and_not_repeated(self) -> None:
        async with self.chat() as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada")
            fake.drop_next("POST", acted=True)
            fake.say(ada, "hello")
            await chat.until(lambda: _count(chat, "unknown", 1))
            fake.say(ada, "again")
            await fake.until(lambda: [each.text for each in ada.chat.shown()] == ["hello", "again"])

    @pytest.mark.parametrize("status", [412, 429, 502, 503])
    async def test_what_the_connector_defers_is_sent_once(self, status: int) -> None:
        async with self.chat() as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada")
            fake.fail_next("POST", status, "Later", retry_after=0.0 if status == 429 else None)
            fake.say(ada, "hello")
            await fake.until(lambda: [each.text for each in ada.chat.shown()] == ["hello"])

    @pytest.mark.parametrize(("status", "code"), [(403, "MessageWritesBlocked"), (404, "ConversationNotFound")])
    async def test_what_the_connector_refuses_is_not_sent_again(self, status: int, code: str) -> None:
        async with self.chat() as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada")
            fake.fail_next("POST", status, code)
            fake.say(ada, "hello")
            await chat.until(lambda: _count(chat, "dead", 1))
            assert ada.chat.shown() == []

    async def test_a_stored_reference_with_a_service_url_of_another_server_gets_nothing(self) -> None:
        store = InMemoryStateStore()
        async with self.chat(store=store) as chat:
            fake = _fake(chat.platform)
            ada = fake.person("Ada")
            fake.say(ada, "hello")
            await fake.until(lambda: len(ada.chat.shown()) == 1)
            (last, *_) = await store.outbox.find(limit=1)
            forged = {**last.reference, "url": "http://127.0.0.1:9/"}
            waiting = last.replace(
                delivery_id="dlv_forged", answer_id="forged", reference=forged, status="pending", ended_at=None, fence=0
            )
            async with store.transaction() as transaction:
                transaction.add_delivery(waiting)
            fake.say(ada, "again")
            await fake.until(lambda: len(ada.chat.shown()) == 2)
            await chat.until(lambda: _count(chat, "dead", 1))
            assert [row.error for row in await chat.deliveries("dead")] == ["host_refused"]

    async def test_a_person_of_a_claim_may_come_in_and_others_may_not(self) -> None:
        agent = EchoAgent()
        async with self.platform() as platform:
            fake = _fake(platform)
            ada = fake.person("Ada")
            allowlist = LinkedClaimAllowlist("oid", [ada.aad_object_id])
            async with self.chat(agent, platform=platform, allowlist=allowlist) as chat:
                eve, web = fake.person("Eve"), fake.person("Web", channel="webchat")
                fake.say(ada, "hello")
                await fake.until(lambda: [each.text for each in ada.chat.shown()] == ["hello"])
                # On Web Chat everybody may write what they like about themselves.
                web.aad_object_id = ada.aad_object_id
                fake.say(web, "I am Ada")
                fake.say(eve, "let me in")
                await fake.until(lambda: bool(web.chat.shown()) and bool(eve.chat.shown()))
                assert len(agent.seen) == 1
                assert await chat.sessions()

    async def test_a_forged_sender_on_web_chat_is_not_a_person_of_teams(self) -> None:
        agent = EchoAgent()
        async with self.platform() as platform:
            fake = _fake(platform)
            ada = fake.person("Ada")
            async with self.chat(agent, platform=platform, allowlist=NativeIdAllowlist([ada.id])):
                web = fake.person("Web", channel="webchat")
                forged = fake.activity(web, "message", text="I am Ada")
                forged["from"] = ada.account()
                assert (await fake.deliver(forged)).status_code == 200
                fake.say(ada, "hello")
                await fake.until(lambda: bool(ada.chat.shown()))
                assert len(agent.seen) == 1

    async def test_a_foreign_tenant_is_refused_and_leaves_nothing(self) -> None:
        agent = EchoAgent()
        async with self.chat(agent, tenants=["aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"]) as chat:
            fake = _fake(chat.platform)
            eve = fake.person("Eve", tenant="cccccccc-cccc-4ccc-8ccc-cccccccccccc")
            response = await fake.deliver(fake.activity(eve, "message", text="hello"))
            assert (response.status_code, agent.seen) == (403, [])

    async def test_two_replicas_answer_each_message_once(self) -> None:
        store = InMemoryStateStore()
        async with self.chat(store=store) as first:
            fake = _fake(first.platform)
            async with self.chat(store=store, platform=first.platform) as second:
                ada = fake.person("Ada")
                activity = fake.activity(ada, "message", text="hello")
                for url in (first.webhook, second.webhook, first.webhook, second.webhook):
                    fake.webhook = url
                    assert (await fake.deliver(activity)).status_code == 200
                fake.say(ada, "again")
                await fake.until(lambda: [each.text for each in ada.chat.shown()] == ["hello", "again"])


@pytest.mark.parametrize(
    ("settings", "finding"),
    [
        ({"app_id": "nonsense"}, "app_id must be"),
        ({"credential": "the secret"}, "credential must be"),
        ({"cloud": "moon"}, "cloud must be"),
        ({"cloud": "china"}, "needs service_hosts"),
        ({"tenants": []}, "tenants must be a list"),
        ({"accept_skills": True}, "needs skill_callers"),
        ({"skill_callers": ["x"]}, "has no effect without accept_skills"),
        ({"service_hosts": ["https://x.example.org"]}, "must be a host name"),
        ({"service_hosts": ["10.0.0.1"]}, "must be a host name"),
        ({"service_hosts": ["*.com"]}, "must be a host name"),
        ({"connector_url": "https://smba.example.org/"}, "connector_url is for tests"),
        ({"connector_url": "http://10.0.0.1:80"}, "connector_url is for tests"),
        ({"transport": "polling"}, "transport='polling' has no effect"),
        ({"previous_secrets": ["an old secret"]}, "previous_secrets has no effect"),
        ({"feedback_hook": print}, "feedback_hook has no effect"),
        ({"call_timeout": 0}, "call_timeout must be positive"),
    ],
)
def test_what_cannot_work_is_found_when_the_host_is_built(settings: dict[str, Any], finding: str) -> None:
    given: dict[str, Any] = {"app_id": APP_ID, "credential": ClientSecret(APP_SECRET), **settings}
    with pytest.raises(ChannelConfigurationError, match=finding) as wrong:
        AgentFrameworkHost(EchoAgent(), channels=[ActivityChannel(**given)])
    assert "the secret" not in str(wrong.value)


def test_the_platform_verifies_tokens_only_inside_foundry() -> None:
    def channel() -> ActivityChannel:
        auth = PlatformAuth(trusted=TrustedEnvironment())
        return ActivityChannel(app_id=APP_ID, credential=ClientSecret(APP_SECRET), auth=auth)

    with pytest.raises(ChannelConfigurationError, match="only in a hosted agent of Foundry"):
        AgentFrameworkHost(EchoAgent(), channels=[channel()])


@asynccontextmanager
async def _host() -> AsyncIterator[tuple[AgentFrameworkHost, FakeActivity]]:
    async with fake_activity() as fake:
        channel = ActivityChannel(
            app_id=APP_ID, credential=ClientSecret(APP_SECRET), connector_url=fake.url, tenants=[fake.tenant]
        )
        host = AgentFrameworkHost(EchoAgent(), channels=[channel], store=InMemoryStateStore())
        async with serving(host):
            yield host, fake


async def test_a_person_is_reached_without_having_written() -> None:
    async with _host() as (host, fake):
        ada = fake.person("Ada")
        for text in ("good morning", "again"):
            await host.deliver(ChannelIdentity(channel="activity", native_id=ada.id), text)
        await fake.until(lambda: [each.text for each in ada.chat.shown()] == ["good morning", "again"])


async def test_a_person_who_has_not_installed_the_bot_is_not_reached() -> None:
    async with _host() as (host, fake):
        ada = fake.person("Ada")
        ada.chat.installed = False
        await host.deliver(ChannelIdentity(channel="activity", native_id=ada.id), "good morning")
        await fake.until(lambda: [call.status for call in fake.calls] == [403])
        assert ada.chat.shown() == []


async def test_check_online_says_what_is_wrong() -> None:
    async with fake_activity() as fake:
        right = ActivityChannel(app_id=APP_ID, credential=ClientSecret(APP_SECRET), connector_url=fake.url)
        assert await right.check_online() == []
        wrong = ActivityChannel(app_id=APP_ID, credential=ClientSecret("wrong-secret"), connector_url=fake.url)
        (problem,) = await wrong.check_online()
        assert "AADSTS7000215" in problem
        assert "wrong-secret" not in problem


def _fake(platform: FakePlatform) -> FakeActivity:
    return cast(DrivenActivity, platform).fake


def _info(activity: Any) -> dict[str, Any] | None:
    return next((each for each in (activity or {}).get("entities", ()) if each["type"] == "streaminfo"), None)


def _final(person: Person) -> list[str]:
    return [each.text for each in person.chat.shown() if not each.is_stream]


async def _count(chat: Chat, status: str, count: int) -> bool:
    return len(await chat.deliveries(status)) == count
