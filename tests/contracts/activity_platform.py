"""The fake Bot Service, as the contract of chat channels drives it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec

from frontdesk.chat.messages import Button
from frontdesk_testing import ChatFile, ChatPerson, ShownMessage
from frontdesk_testing.activity import Conversation, FakeActivity, Person, fake_activity
from frontdesk_testing.activity.tokens import LIFETIME
from frontdesk_testing.activity.world import Message
from frontdesk_testing.chat_platform import PushFailure


class DrivenActivity:
    """The fake in the loop of the test, with people of Teams. Groups are channels of a team, which have threads."""

    def __init__(self, fake: FakeActivity, channel: str) -> None:
        self.fake, self.channel = fake, channel
        self.mention = fake.mention
        self._threads: dict[str, str] = {}
        self._notices: dict[str, str] = {}

    async def listen(self, url: str) -> None:
        self.fake.webhook = url

    async def person(self, name: str) -> ChatPerson:
        person = self.fake.person(name, channel=self.channel)
        return ChatPerson(id=person.id, name=name, chat_id=person.chat.id)

    async def group(self, *people: ChatPerson) -> str:
        members = [self._person(each) for each in people]
        group = self.fake.group(*members, kind="channel")
        self.fake.add_bot(members[0], place=group)
        return group.id

    async def say(
        self,
        who: ChatPerson,
        text: str,
        *,
        chat_id: str = "",
        thread_id: str = "",
        files: Sequence[ChatFile] = (),
        album: str = "",
    ) -> str:
        attachments = [self.fake.attach(file.data, file.media_type, file.name) for file in files]
        thread = self._thread(thread_id) if thread_id else ""
        return self.fake.say(
            self._person(who), text, place=self._place(chat_id or who.chat_id), thread=thread, attachments=attachments
        )

    async def press(self, who: ChatPerson, message: ShownMessage, data: str, *, chat_id: str = "") -> str:
        place = self._place(chat_id or who.chat_id)
        shown = place.messages[message.message_id]
        person = self._person(who)
        if self.channel != "msteams":
            return self.fake.say(person, "", place=place, replyToId=shown.id, value={"frontdesk": data})
        action = {"type": "Action.Execute", "verb": "frontdesk", "data": {"frontdesk": data}}
        invoke = self.fake.activity(
            person,
            "invoke",
            place=place,
            name="adaptiveCard/action",
            value={"action": action, "trigger": "manual"},
            replyToId=shown.id,
        )
        response = await self.fake.deliver(invoke)
        self._notices[invoke["id"]] = self.fake.apply_click(response, shown)
        return invoke["id"]

    async def repeat(self, event_id: str) -> None:
        await self.fake.until(lambda: event_id in self.fake.responses)
        (await self.fake.deliver(self.fake.activities[event_id])).raise_for_status()

    async def shown(self, chat_id: str) -> list[ShownMessage]:
        return [self._shown(message) for message in self._place(chat_id).shown()]

    def _shown(self, message: Message) -> ShownMessage:
        thread = message.conversation.partition(";messageid=")[2]
        names = {number: name for name, number in self._threads.items()}
        files = [each for each in message.attachments if ".card." not in each["contentType"]]
        return ShownMessage(
            message_id=message.id,
            text=_unescaped(message.text),
            thread_id=names.get(thread, ""),
            buttons=tuple(
                Button(text=action["title"], data=action["data"]["frontdesk"])
                for action in message.actions
                if "data" in action
            ),
            reply_to=message.activity.get("replyToId", ""),
            files=tuple(_file(each) for each in files),
        )

    async def notice(self, event_id: str) -> str:
        return self._notices.get(event_id, "")

    async def fail(self, failure: PushFailure, *, times: int = 1) -> None:
        if failure == "lost":
            return self.fake.drop_next("POST", acted=True, times=times)
        errors: dict[str, tuple[int, str, float | None]] = {
            "limited": (429, "TooManyRequests", 0.0),
            "unavailable": (503, "ServiceUnavailable", None),
            "refused": (403, "MessageWritesBlocked", None),
        }
        status, code, retry_after = errors[failure]
        self.fake.fail_next("POST", status, code, times=times, retry_after=retry_after)

    async def shut(self, who: ChatPerson, *, chat_id: str = "") -> None:
        self.fake.remove_bot(self._person(who), place=self._place(chat_id or who.chat_id))

    async def readmit(self, who: ChatPerson, *, chat_id: str = "") -> None:
        self.fake.add_bot(self._person(who), place=self._place(chat_id or who.chat_id))

    async def go_away(self, *, times: int) -> None:
        self.fake.fail_next("*", 503, "ServiceUnavailable", times=times)

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        while True:
            seen = self.fake.changes
            if await condition():
                return
            # A condition may depend on the host, which does not report its changes to the platform.
            with suppress(TimeoutError):
                await self.fake.until(lambda before=seen: self.fake.changes != before, within=0.1)

    async def invoke(self, who: ChatPerson, name: str) -> tuple[int, bytes]:
        response = await self.fake.invoke(self._person(who), name, {"of": name})
        return response.status_code, response.content

    async def stop(self, who: ChatPerson) -> None:
        self.fake.stop_stream(self._person(who))

    def event(self, who: ChatPerson, text: str) -> bytes:
        activity = self.fake.activity(self._person(who), "message", text=text)
        return msgspec.json.encode({**activity, "id": "not-sent"})

    def signed(self, body: bytes, *, at: float) -> Mapping[str, str]:
        url = self.fake.service_url(self.channel)
        token = self.fake.token(url, nbf=int(at), exp=int(at) + LIFETIME // 2)
        return {"authorization": f"Bearer {token}"}

    def _person(self, who: ChatPerson) -> Person:
        return self.fake.connector.people[who.id]

    def _place(self, chat_id: str) -> Conversation:
        return self.fake.connector.conversations[chat_id]

    def _thread(self, name: str) -> str:
        return self._threads.setdefault(name, str(900_000 + len(self._threads)))


def _file(attachment: Mapping[str, str]) -> ChatFile:
    import base64

    head, _, data = attachment["contentUrl"].partition(";base64,")
    return ChatFile(media_type=head.removeprefix("data:"), data=base64.b64decode(data), name=attachment.get("name", ""))


def _unescaped(text: str) -> str:
    """Return a text in Markdown as people see it."""
    import re

    plain = re.sub(r"\\([\\`*_\[\]<>~|#])", r"\1", text.replace("  \n", "\n").replace("\u200b", ""))
    return plain.replace("&amp;", "&")


@asynccontextmanager
async def driven_activity(channel: str = "msteams") -> AsyncIterator[DrivenActivity]:
    async with fake_activity() as fake:
        yield DrivenActivity(fake, channel)
