"""Who a visitor is, and how they are linked with their other accounts from the page."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from frontdesk import AgentFrameworkHost, AuthPolicy, OneTimeCodeIdentityLinker, ResponseTarget
from frontdesk.channels.web import WebChatChannel
from frontdesk.channels.web import account as elsewhere_module
from frontdesk.models.request import ChannelRequest
from frontdesk_testing import EchoAgent, serving
from frontdesk_testing.messages import MessageChannel
from tests.channels.web.visiting import DEADLINE, Visitor, open_visitor, web_host
from tests.contracts.message_platform import SECRET, drive_platform

CHANGES = {
    "link": {},
    "code": {"code": "AAAA-AAAA"},
    "answer": {"challenge_id": "lch_1.x", "confirm": True},
    "unlink": {},
}


@contextlib.asynccontextmanager
async def two_devices(page: WebChatChannel | None = None, **settings: Any) -> AsyncIterator[tuple[Visitor, Visitor]]:
    host = AgentFrameworkHost(
        EchoAgent(), channels=[page or WebChatChannel()], linker=OneTimeCodeIdentityLinker(), **settings
    )
    async with serving(host) as client, open_visitor(client.base_url) as ada, open_visitor(client.base_url) as phone:
        yield ada, phone


async def account(visitor: Visitor, path: str, **body: Any) -> dict[str, Any]:
    response = await visitor.post(f"account/{path}", **body)
    assert response.status_code == 200, response.text
    return response.json()


async def get_question(visitor: Visitor) -> dict[str, Any]:
    return (await visitor.get("account"))["question"]


async def answer(visitor: Visitor, *, confirm: bool = True) -> dict[str, Any]:
    return await account(visitor, "answer", challenge_id=(await get_question(visitor))["challenge_id"], confirm=confirm)


async def link(ada: Visitor, phone: Visitor) -> None:
    """Links a phone to the visitor who shows the code."""
    code = (await account(ada, "link"))["code"]
    await account(phone, "code", code=code)
    await answer(phone)
    assert (await answer(ada))["outcome"] == "linked"


async def test_each_side_sees_the_other_before_anything_is_linked() -> None:
    async with two_devices() as (ada, phone):
        mine, theirs = (await ada.get("account"))["you"], (await phone.get("account"))["you"]
        begun = await account(ada, "link")
        assert begun["code"]
        entered = await account(phone, "code", code=begun["code"].lower())
        assert (entered["question"]["other"], entered["question"]["waits_for"]) == (mine, "you")
        assert not entered["linked"]
        assert await get_question(ada) is None
        confirmed = await answer(phone)
        assert (confirmed["outcome"], confirmed["question"]["waits_for"]) == ("", "other")
        assert (await get_question(ada))["other"] == theirs
        linked = await answer(ada)
        assert (linked["outcome"], linked["linked"], linked["others"]) == ("linked", True, [theirs])
        assert (await phone.get("account"))["others"] == [mine]


@pytest.mark.parametrize("refuser", ["ada", "phone"])
async def test_each_side_can_refuse_and_the_code_is_worth_nothing_then(refuser: str) -> None:
    async with two_devices() as (ada, phone):
        code = (await account(ada, "link"))["code"]
        await account(phone, "code", code=code)
        if refuser == "ada":
            await answer(phone)
        refused = await answer(ada if refuser == "ada" else phone, confirm=False)
        assert (refused["outcome"], refused["linked"], refused["question"]) == ("given_up", False, None)
        again = await phone.post("account/code", code=code)
        assert (again.status_code, again.json()["error"]["code"]) == (403, "code_refused")


async def test_two_devices_of_a_person_show_the_same_and_part_again() -> None:
    async with two_devices() as (ada, phone):
        await ada.say("from the desk")
        await ada.wait_for_messages(2)
        await phone.say("from the phone")
        await phone.wait_for_messages(2)
        async with phone.feed(after=(await phone.get("me"))["cursor"]) as page:
            await link(ada, phone)
            # The page is sent away, and comes back as who it is now.
            with contextlib.suppress(Exception):
                await page.until(lambda _: False)
            assert page.socket.close_code == 1008
        before = await phone.get("me")
        assert before["box"] == (await ada.get("me"))["box"]
        assert (await phone.texts())[:2] == ["from the desk", "from the desk"]
        await phone.say("both see this")
        assert "both see this" in [message["text"] for message in await ada.wait_for_messages(len(await phone.texts()))]
        assert (await account(phone, "unlink"))["outcome"] == "parted"
        assert (await phone.get("me"))["box"] != before["box"]
        assert (await phone.texts())[:2] == ["from the phone", "from the phone"]
        assert "from the phone" not in await ada.texts()
        assert (await account(phone, "unlink"))["outcome"] == "alone"


async def test_commands_of_linking_are_about_the_browser_in_which_they_are_typed() -> None:
    async with two_devices() as (ada, phone):
        await link(ada, phone)
        mine, count = (await phone.get("account"))["you"]["id"], len(await phone.wait_for_messages(1))
        phone.count = 100
        for text in ("/whoami", "/new"):
            await phone.say(text)
            count += 2
            said = (await phone.wait_for_messages(count))[-1]["text"]
            assert mine in said or said == "We start anew."
        await phone.say("/unlink")

        async def parted() -> bool:
            return not (await phone.get("account"))["linked"]

        async with asyncio.timeout(DEADLINE):
            while not await parted():
                await ada.get("me")
        assert not (await ada.get("account"))["others"]


async def test_a_page_that_comes_back_to_another_mailbox_reads_it_anew() -> None:
    async with two_devices() as (ada, phone):
        await ada.say("hello")
        await ada.wait_for_messages(2)
        me = await phone.get("me")
        await link(ada, phone)
        frame = await phone.get(f"poll?after={me['cursor']}&box={me['box']}")
        assert frame["events"] == [{"type": "reset"}]
        assert frame["box"] == (await ada.get("me"))["box"]
        # Without the name of its mailbox a cursor of another one would be taken for one of this.
        latest = (await ada.get("me"))["cursor"]
        assert (await phone.get(f"poll?after={latest - 1}&box={me['box']}"))["events"] == [{"type": "reset"}]


async def test_a_poll_that_waits_while_its_visitor_is_unlinked_answers_nothing() -> None:
    async with two_devices() as (ada, phone):
        await link(ada, phone)
        await phone.wait_for_messages(1)
        cursor = (await phone.get("me"))["cursor"]
        poll = asyncio.create_task(phone.http.get(f"/chat/api/poll?after={cursor}"))
        await asyncio.sleep(0)
        await account(phone, "unlink")
        await ada.say("for me alone")
        assert "for me alone" not in (await poll).text


async def test_an_answer_to_all_accounts_of_a_person_is_shown_once() -> None:
    def everywhere(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(response_target=ResponseTarget.all_linked)

    async with two_devices(WebChatChannel(run_hook=everywhere)) as (ada, phone):
        await link(ada, phone)
        await phone.say("once")
        await ada.until(lambda: _answered(ada, "once"))
        await phone.say("the next one")
        await ada.until(lambda: _answered(ada, "the next one"))
        assert (await phone.texts()).count("once") == 2


async def _answered(visitor: Visitor, text: str) -> bool:
    return (await visitor.texts()).count(text) >= 2


async def test_a_host_without_a_linker_says_who_you_are_and_links_nothing() -> None:
    async with web_host(EchoAgent()) as url, open_visitor(url) as ada:
        shown = await ada.get("account")
        assert shown["way"] is None
        assert shown["you"]["channel"] == "web"
        for path, body in CHANGES.items():
            assert (await ada.post(f"account/{path}", **body)).status_code == 501, path


@pytest.mark.parametrize("path", CHANGES)
@pytest.mark.parametrize("headers", [{"origin": "https://elsewhere.example"}, {"origin": "null"}, {}])
async def test_a_page_of_another_site_links_nothing(path: str, headers: dict[str, str]) -> None:
    async with two_devices() as (ada, _):
        cookies = ada.http.cookies
        async with httpx.AsyncClient(base_url=ada.base_url, cookies=cookies, headers=headers, trust_env=False) as http:
            refused = await http.post(f"/chat/api/account/{path}", json=CHANGES[path])
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_refused")
            cross = {"sec-fetch-site": "cross-site", **headers}
            assert (await http.get("/chat/api/account", headers=cross)).status_code == 403
        plain = {"content-type": "text/plain"}
        assert (await ada.http.post(f"/chat/api/account/{path}", content=b"{}", headers=plain)).status_code == 415


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("code", {"code": ""}),
        ("code", {"code": "x" * 101}),
        ("code", {"code": "confirm"}),
        ("code", {"code": "Yes please"}),
        ("answer", {"challenge_id": "", "confirm": True}),
        ("answer", {"challenge_id": "two words", "confirm": True}),
        ("answer", {"challenge_id": "c"}),
        ("unlink", {"more": 1}),
    ],
)
async def test_a_body_that_is_wrong_links_nothing(path: str, body: dict[str, Any]) -> None:
    async with two_devices() as (ada, _):
        assert (await ada.post(f"account/{path}", **body)).status_code == 400


async def test_a_question_can_t_be_answered_for_another_visitor() -> None:
    async with two_devices() as (ada, phone):
        await account(phone, "code", code=(await account(ada, "link"))["code"])
        question = (await get_question(phone))["challenge_id"]
        stolen = await ada.post("account/answer", challenge_id=question, confirm=True)
        assert (stolen.status_code, stolen.json()["error"]["code"]) == (403, "nothing_to_confirm")
        assert (await get_question(phone))["waits_for"] == "you"


async def test_who_may_not_come_in_has_no_account_here() -> None:
    async with two_devices(default_allowlist=AuthPolicy.native_allowlist(["somebody-else"])) as (ada, _):
        assert (await ada.http.get("/chat/api/account")).json()["error"]["code"] == "denied"
        for path, body in CHANGES.items():
            assert (await ada.post(f"account/{path}", **body)).status_code == 403


@pytest.mark.parametrize("from_page", [True, False], ids=["code of the page", "code of the chat"])
async def test_a_chat_and_the_page_go_on_with_one_conversation(from_page: bool) -> None:
    agent = EchoAgent()
    async with drive_platform() as platform:
        chat = MessageChannel(platform_url=platform.url, token=platform.token, secret=SECRET)
        host = AgentFrameworkHost(agent, channels=[WebChatChannel(), chat], linker=OneTimeCodeIdentityLinker())
        async with serving(host) as client, open_visitor(client.base_url) as visitor:
            await platform.listen(f"{client.base_url}{chat.path}{chat.webhook_path}")
            ada = await platform.person("Ada")
            if from_page:
                await tell(platform, ada, f"/link {(await account(visitor, 'link'))['code']}", "This code is from")
                await tell(platform, ada, "/link confirm", "Now go back")
            else:
                code = re.search(
                    r"[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{2}", await tell(platform, ada, "/link", "Your code is")
                )
                await account(visitor, "code", code=code.group() if code else "")
            # The page names the other side before anything is linked.
            other = (await get_question(visitor))["other"]
            assert (other["channel"], other["name"]) == ("messages", "Ada")
            assert not (await visitor.get("account"))["linked"]
            await answer(visitor)
            if not from_page:
                await tell(platform, ada, "/link confirm", "share one conversation")
            await tell(platform, ada, "said in the chat", "said in the chat")
            await visitor.say("said on the page")
            await visitor.until(lambda: _answered(visitor, "said on the page"))
    assert [message.text for message in agent.seen[-1] if message.role == "user"] == [
        "said in the chat",
        "said on the page",
    ]


async def test_the_page_shows_what_was_said_in_a_linked_chat_once_and_in_its_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elsewhere_module, "MAX_TURNS", 5)
    async with drive_platform() as platform:
        chat = MessageChannel(platform_url=platform.url, token=platform.token, secret=SECRET)
        host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel(), chat], linker=OneTimeCodeIdentityLinker())
        async with serving(host) as client, open_visitor(client.base_url) as visitor:
            await platform.listen(f"{client.base_url}{chat.path}{chat.webhook_path}")
            ada = await platform.person("Ada")
            for number in range(6):
                await tell(platform, ada, f"before {number}.", f"before {number}.")
            opened = await visitor.get("conversations/main/messages")
            assert opened["elsewhere"] == {"messages": [], "before": None, "since": 0.0}
            code = re.search(r"[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{2}", await tell(platform, ada, "/link", "Your code is"))
            await account(visitor, "code", code=code.group() if code else "")
            await answer(visitor)
            await tell(platform, ada, "/link confirm", "share one conversation")
            await visitor.say("on the page")
            await visitor.until(lambda: _answered(visitor, "on the page"))
            await tell(platform, ada, "after", "after")
            elsewhere = (await visitor.get("me?open=main"))["opened"]["elsewhere"]
            shown = [(message["role"], message["text"], message["origin"]) for message in elsewhere["messages"]]
            wanted = [text for number in range(3, 6) for text in [f"before {number}."] * 2] + ["after"] * 2
            assert shown == [
                (role, text, "messages") for role, text in zip(["user", "assistant"] * 4, wanted, strict=True)
            ]
            times = [message["at"] for message in elsewhere["messages"]]
            page_at = (await visitor.messages())[-1]["at"]
            assert times == sorted(times)
            assert elsewhere["since"] == times[0] < times[-3] < page_at < times[-1]
            rest = await visitor.get(f"conversations/main/elsewhere?before={elsewhere['before']}")
            assert [message["text"] for message in rest["messages"][::2]] == [f"before {n}." for n in range(3)]
            assert (rest["before"], rest["since"]) == (None, 0.0)
            async with open_visitor(client.base_url) as stranger:
                for path in ("", f"?before={elsewhere['before']}"):
                    assert (await stranger.get(f"conversations/main/elsewhere{path}"))["messages"] == []


async def tell(platform: Any, who: Any, text: str, wanted: str) -> str:
    """Writes in the chat, and returns the answer that has these words."""
    said: list[str] = []

    async def there() -> bool:
        said[:] = [message.text for message in await platform.shown(who.chat_id) if wanted in message.text]
        return bool(said)

    await platform.say(who, text)
    await platform.until(there)
    return said[-1]
