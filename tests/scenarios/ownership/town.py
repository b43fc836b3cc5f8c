"""A host that several people use, and somebody who remembers whose everything is."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from tests.scenarios.desk import until
from tests.scenarios.ledger import Ledger
from tests.scenarios.ownership.calls import KINDS, Call
from tests.scenarios.ownership.mind import Mind, owners_in, summary
from tests.scenarios.stores import new_store

PEOPLE = {"alice": "the-key-of-alice", "bob": "the-key-of-bob-long"}
ENDED = ("completed", "failed", "cancelled", "incomplete")
_OTHER = str.maketrans("0123456789abcdefghijklmnopqrstuvwxyz", "edcfba9876543210zyxwvutsrqponmlkjihg")


class Owner(NamedTuple):
    """A principal at one door: who calls two doors with one key is two people there, until they are linked."""

    person: str
    family: str

    def __str__(self) -> str:
        return f"{self.person}/{self.family}"


class Step(NamedTuple):
    """What somebody does, with which of the ids that anybody ever saw."""

    person: str
    kind: str
    picks: tuple[tuple[int, bool], ...]


def make_up(one: str) -> str:
    """An id of the same form that nobody has."""
    place = max(one.rfind(mark) for mark in "_-") + 1
    return one[:place] + one[place:].translate(_OTHER)


class Town:
    """The host, what everybody owns, and what they see of it."""

    def __init__(self, client: httpx.AsyncClient, ledger: Ledger, mind: Mind) -> None:
        self._client = client
        self._ledger = ledger
        self._mind = mind
        self._words = 0
        self.owners: dict[str, Owner] = {}
        self._named: dict[Owner, set[str]] = {}
        """The ids that somebody has used as names of their own."""
        self._views: dict[str, tuple[int, Any]] = {}

    async def step(self, step: Step) -> None:
        kind = KINDS[step.kind]
        me = Owner(step.person, kind.family)
        picked = zip(kind.wants, step.picks, strict=False)
        ids = [self._pick(wanted, number, wild) for wanted, (number, wild) in picked]
        if kind.wants and (not ids or None in ids):
            return
        self._words += 1
        text = f"{kind.word} <{me}:{self._words}>"
        chosen = [one for one in ids if one is not None]
        foreign = [one for one in chosen if self._is_foreign(me, one)]
        if "stream=true" in kind.make(text, *chosen).path and self._goes_on(me, chosen[0]):
            # The stream of a run of the caller's own would not end before the story does.
            return
        written, paid = len(self._ledger.writes), len(self._mind.paid)
        answer = await self._send(me, kind.make(text, *chosen))
        if foreign and not kind.names:
            assert answer.status_code in (400, 404), (step, answer.text)
            await self._looks_like_nothing(me, step, text, chosen, answer)
            assert (len(self._ledger.writes), len(self._mind.paid)) == (written, paid), step
        assert owners_in("".join(self._mind.paid[paid:])) <= {str(me)}, step
        if answer.is_success:
            self._named.setdefault(me, set()).update(chosen if kind.names else ())
            self._learn(me, answer)
            await self._wait_until_still(me, text, answer)
        await self._look_around(me, step)

    def _is_foreign(self, me: Owner, one: str) -> bool:
        """Whether it is another's, and nothing that the person has given the same name."""
        return self.owners[one] != me and one not in self._named.get(me, ())

    async def _wait_until_still(self, me: Owner, text: str, answer: httpx.Response) -> None:
        """Waits until nothing goes on by itself that could be taken for what the next step does."""
        if text.startswith("wait"):
            await until(lambda: text in self._mind.waiting)
            return
        runs = [one for one in _ids(answer) if one.startswith(("resp_", "run_"))]
        if runs:
            await until(lambda: self._ended(me, runs[0]))

    async def _ended(self, me: Owner, one: str) -> bool:
        if _home(one, me) is None:
            return True
        shown = (await self._look(me, one))[1]
        return "status" not in shown or shown["status"] in ENDED or shown["metadata"]["said"] in self._mind.waiting

    def _pick(self, wanted: str, number: int, wild: bool) -> str | None:
        ids = [one for one in self.owners if wild or one.startswith(wanted)] or list(self.owners)
        return ids[number % len(ids)] if ids else None

    async def _looks_like_nothing(
        self, me: Owner, step: Step, text: str, ids: Sequence[str], answer: httpx.Response
    ) -> None:
        others = {one: make_up(one) for one in ids if self._is_foreign(me, one)}
        nothing = await self._send(me, KINDS[step.kind].make(text, *(others.get(one, one) for one in ids)))
        said, wanted = answer.text, nothing.text
        for one, other in others.items():
            said, wanted = said.replace(one, "ID"), wanted.replace(other, "ID")
        assert (answer.status_code, said) == (nothing.status_code, wanted), step
        assert set(answer.headers) == set(nothing.headers), step

    async def _send(self, me: Owner, one: Call) -> httpx.Response:
        headers = {"x-api-key": PEOPLE[me.person], **(one.headers or {})}
        answer = await self._client.request(one.method, one.path, json=one.body, headers=headers)
        assert answer.status_code < 500, (one, answer.text)
        assert owners_in(answer.text) <= {str(me)}, (me, one, answer.text)
        return answer

    def _learn(self, me: Owner, answer: httpx.Response) -> None:
        """Whoever is shown an id first owns it; nobody else may ever be shown it, unless they named it themselves."""
        for one in _ids(answer):
            owner = self.owners.setdefault(one, me)
            assert owner == me or one in self._named.get(me, ()), (me, one)

    async def _look_around(self, me: Owner, step: Step) -> None:
        """What others own has not changed by anything that somebody else did."""
        assert len(self._mind.heard_together) <= 1, self._mind.heard_together
        for one, owner in list(self.owners.items()):
            if _home(one, owner) is None:
                continue
            view = await self._look(owner, one)
            if owner != me and one in self._views:
                assert view == self._views[one], (step, one)
            self._views[one] = view

    async def _look(self, owner: Owner, one: str) -> tuple[int, Any]:
        shown = await self._send(owner, Call("GET", _home(one, owner) or "/"))
        return shown.status_code, shown.json()

    def _goes_on(self, me: Owner, one: str) -> bool:
        status, body = self._views.get(one, (404, {}))
        return self.owners[one] == me and status == 200 and body.get("status", "completed") not in ENDED

    async def end(self) -> None:
        """Lets everything go; what nobody of its own has cancelled or deleted ends well."""
        running = [one for one, owner in self.owners.items() if self._goes_on(owner, one)]
        self._mind.go_on.set()
        for one in running:
            owner = self.owners[one]

            async def ended(owner: Owner = owner, one: str = one) -> bool:
                return (await self._look(owner, one))[1]["status"] in ENDED

            await until(ended)
            assert (await self._look(owner, one))[1]["status"] == "completed", one


def _home(one: str, owner: Owner) -> str | None:
    """Where something that can be looked at is shown to its owner."""
    if owner.family == "invocations":
        return f"/invocations/{one}" if one.startswith("run_") else None
    if one.startswith("conv_"):
        return f"/v1/conversations/{one}/items"
    return f"/v1/responses/{one}" if one.startswith("resp_") else None


def _ids(answer: httpx.Response) -> Iterator[str]:
    if answer.headers["content-type"].startswith("application/json"):
        yield from _walk(answer.json())
        return
    for line in answer.text.splitlines():
        if line.startswith("data: {"):
            yield from _walk(json.loads(line[6:]))


def _walk(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _walk(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name in ("id", "session_id", "encrypted_content", "last_id") and isinstance(one, str):
                yield one
            else:
                yield from _walk(one)


@asynccontextmanager
async def open_town(ledger: Ledger | None = None) -> AsyncIterator[Town]:
    """A started host with every HTTP door."""
    auth, mind, ledger = ApiKeyAuth(PEOPLE), Mind(), ledger or Ledger(new_store())
    store: Any = ledger
    host = AgentFrameworkHost(
        mind.agent(),
        channels=[
            ResponsesChannel(auth=auth, compactor=summary),
            ConversationsChannel(auth=auth),
            # An auth object of its own: its principals are other people, even with the same keys.
            InvocationsChannel(auth=ApiKeyAuth(PEOPLE)),
        ],
        store=store,
        # Whoever comes to a session that is busy is told so at once.
        session_wait_seconds=0.02,
    )
    async with host.app.router.lifespan_context(host.app):
        transport = httpx.ASGITransport(app=host.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
            town = Town(client, ledger, mind)
            try:
                yield town
                await town.end()
            finally:
                mind.go_on.set()
