"""Links two channels by a code: `/link` here, `/link CODE` and `/link confirm` there, and `/link confirm` here again.

The code alone links no accounts. Each side is shown the other and must confirm: first the one who entered the code,
which is used up only then, and after that the one who issued it. Until the last confirmation either side can refuse,
and then the code is invalid.

A person has at most one open question (`link-question`), so that a yes can't be taken for the answer to another. The
question of the one who entered lasts as long as that of the issuer: who could still be linked can still refuse. No
stored value shows a code: a grant is found by a keyed hash of it.
"""

import hashlib
from typing import Any

from frontdesk.abc.linker import LinkDesk
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import Grant, LinkChallenge, LinkProof, LinkQuestion, LinkRecord
from frontdesk.errors import LinkRefusedError, StoreError
from frontdesk.kit.auth.secrets import Secret, revealed
from frontdesk.kit.chat.people import person_phrase
from frontdesk.linkers import codes
from frontdesk.linkers.attempts import take_attempt
from frontdesk.linkers.code_grants import CodeGrants, slim

CONFIRM, REJECT = "confirm", "reject"
_YES, _NO = (CONFIRM, "yes"), (REJECT, "no", "cancel")
_ENTERED, _ISSUED = "entered", "issued"
_SHORTEST = 8
_SHORTEST_SECRET = 16
_WRONG = "This code does not work. Ask for a new one."
_NOTHING = "There is nothing to confirm."
_BUSY = "The account that issued this code has another question to answer first. Answer it there, and confirm again."


class OneTimeCodeIdentityLinker:
    """Proves that two identities are one person's by a code that is shown on one channel and typed on the other."""

    name = "one_time_code"
    gives_claims = False
    _desk: LinkDesk
    _grants: CodeGrants

    def __init__(
        self,
        *,
        code_length: int = 10,
        expires_in: float = 900.0,
        max_attempts_per_identity: int = 5,
        max_attempts_per_code: int = 5,
        secret: str | Secret | None = None,
    ) -> None:
        """Check the settings; codes and the windows in which attempts are counted last for `expires_in` seconds.

        Wrong codes count for whoever enters them, and for the codes that begin alike: so the number of those who guess
        makes no code easier to find, and nobody can use up the attempts of everybody.

        `secret` is the key by which codes are hashed and challenges signed; without one, the host keeps a random key
        in its store.
        """
        if not _SHORTEST <= code_length <= 40:
            raise ValueError(f"code_length must be from {_SHORTEST} to 40: fewer letters could be guessed")
        if not 30 <= expires_in <= 3600:
            raise ValueError("expires_in must be from 30 to 3600 seconds")
        if min(max_attempts_per_identity, max_attempts_per_code) < 1:
            raise ValueError("max_attempts_per_identity and max_attempts_per_code must be at least 1")
        if secret is not None and len(revealed(secret)) < _SHORTEST_SECRET:
            raise ValueError(f"secret must have at least {_SHORTEST_SECRET} characters")
        self._length = code_length
        self._expires_in = expires_in
        self._each = max_attempts_per_identity
        self._per_code = max_attempts_per_code
        self._key: bytes | None = None if secret is None else hashlib.sha256(revealed(secret).encode()).digest()

    def use(self, desk: LinkDesk) -> None:
        self._desk = desk
        self._grants = CodeGrants(desk, self.name, self._key)

    async def begin(self, identity: ChannelIdentity) -> LinkChallenge:
        waiting = await self._question(identity)
        if waiting is not None:
            return await self._shown(waiting)
        await self._limit("begun", identity)
        grant, code = await self._grants.draw(identity, self._length, self._desk.now() + self._expires_in)
        minutes = max(1, round(self._expires_in / 60))
        return LinkChallenge(
            challenge_id=await self._grants.signed(grant.data["challenge"], identity),
            identity=identity,
            instructions=self._say(identity, "link.code", code=code, minutes=minutes),
            code=code,
            expires_at=grant.expires_at,
        )

    async def complete(self, identity: ChannelIdentity, proof: str) -> LinkRecord | LinkChallenge | None:
        word, _, challenge_id = proof.strip().partition(" ")
        if word.lower() in _YES:
            return await self._confirm(identity, challenge_id.strip())
        if word.lower() in _NO:
            return await self._reject(identity, challenge_id.strip())
        return await self._enter(identity, proof)

    async def resolve(self, identity: ChannelIdentity) -> LinkRecord | None:
        return await self._desk.link_of(identity)

    async def question_of(self, identity: ChannelIdentity) -> LinkQuestion | None:
        question = await self._question(identity)
        if question is None:
            return None
        challenge = await self._shown(question)
        confirmed = question.data["side"] == _ENTERED and await self._counterpart(question) is not None
        return LinkQuestion(
            challenge_id=challenge.challenge_id,
            other=question.data["other"],
            waits_for="other" if confirmed else "you",
            expires_at=question.expires_at,
        )

    async def unlink(self, identity: ChannelIdentity) -> None:
        await self._desk.part(identity, here=identity)

    async def _enter(self, identity: ChannelIdentity, typed: str) -> LinkChallenge:
        """Ask the person who entered a code to confirm its issuer; the code stays valid."""
        await self._limit("entered", identity)
        waiting = await self._question(identity)
        if waiting is not None:
            return await self._shown(waiting)
        code = codes.read(typed, self._length)
        grant = None if code is None else await self._found(identity, code)
        # A code that is wrong, expired, used or one's own gets the same answer.
        if grant is None or grant.identity.key == identity.key:
            raise LinkRefusedError(_WRONG, code="code_refused")
        question = Grant(
            grant_id=await self._grants.place("question", identity),
            identity=slim(identity),
            expires_at=self._desk.now() + self._expires_in,
            data={**grant.data, "side": _ENTERED, "other": grant.identity, "code": grant.grant_id},
        )
        try:
            await self._desk.keep(question)
        except StoreError:
            # Another question came first, which must be answered before this one is asked.
            raise LinkRefusedError(_WRONG, code="code_refused") from None
        return await self._shown(question)

    async def _found(self, identity: ChannelIdentity, code: str) -> Grant | None:
        """Return the grant of a code; a wrong one counts for all codes that begin like it, whether or not there are."""
        place = await self._grants.of_beginning(code)
        attempt = await take_attempt(self._desk, place, identity, most=self._per_code, seconds=self._expires_in)
        grant = await self._desk.kept(await self._grants.of_code(code))
        if grant is not None:
            await self._desk.exchange(attempt)
        return grant

    async def _confirm(self, identity: ChannelIdentity, challenge_id: str) -> LinkRecord | LinkChallenge:
        question = await self._waiting(identity, challenge_id)
        if question is None:
            raise LinkRefusedError(_NOTHING, code="nothing_to_confirm")
        if question.data["side"] == _ENTERED:
            return await self._ask_issuer(question)
        if await self._desk.kept(_seen(question)) is None:
            return await self._shown(question)
        other: ChannelIdentity = question.data["other"]
        proof = LinkProof(grant_id=question.grant_id, linker=self.name, identity=other, survivor=identity)
        record = await self._desk.join(proof, here=identity)
        await self._drop(other, question)
        return record

    async def _ask_issuer(self, mine: Grant) -> LinkChallenge:
        """Use up the code that was confirmed, and ask its issuer to confirm too."""
        issuer: ChannelIdentity = mine.data["other"]
        ask = Grant(
            grant_id=await self._grants.place("question", issuer),
            identity=issuer,
            expires_at=mine.expires_at,
            data={"challenge": mine.data["challenge"], "side": _ISSUED, "other": mine.identity},
        )
        if await self._desk.exchange(mine.data["code"], ask):
            if await self._desk.tell(issuer, self._words(ask)):
                await self._note_shown(ask)
        elif await self._counterpart(mine) is None:
            if await self._desk.kept(mine.data["code"]) is not None:
                raise LinkRefusedError(_BUSY, code="link_busy")
            await self._desk.exchange(mine.grant_id)
            raise LinkRefusedError(_WRONG, code="code_refused")
        words = self._say(mine.identity, "link.go_back", other=person_phrase(issuer), there=self._command(issuer))
        return await self._challenge(mine, words)

    async def _reject(self, identity: ChannelIdentity, challenge_id: str) -> None:
        question = await self._waiting(identity, challenge_id)
        if question is None:
            if challenge_id or not await self._grants.take_back(identity):
                raise LinkRefusedError(_NOTHING, code="nothing_to_confirm")
        elif question.data["side"] == _ISSUED:
            await self._refuse_entered(question)
        else:
            await self._refuse_issued(question)

    async def _refuse_entered(self, ask: Grant) -> None:
        """Refuse the person who entered a code, on behalf of its issuer."""
        if not await self._desk.exchange(ask.grant_id):
            raise LinkRefusedError(_NOTHING, code="nothing_to_confirm")
        other: ChannelIdentity = ask.data["other"]
        await self._drop(other, ask)
        await self._desk.tell(other, self._say(other, "link.refused_by", other=person_phrase(ask.identity)))

    async def _refuse_issued(self, mine: Grant) -> None:
        """Refuse the issuer of a code, before or after the confirmation of who entered it, while nothing is linked."""
        issuer: ChannelIdentity = mine.data["other"]
        # The code first: a confirmation at the same moment turns it into the question that is looked for next.
        message = None
        if await self._desk.exchange(mine.data["code"]):
            # A person who has not confirmed is not named.
            message = self._say(issuer, "link.code_refused")
        else:
            ask = await self._counterpart(mine)
            if ask is not None and await self._desk.exchange(ask.grant_id):
                message = self._say(issuer, "link.refused_by", other=person_phrase(mine.identity))
        await self._desk.exchange(mine.grant_id)
        if message is None:
            raise LinkRefusedError(_NOTHING, code="nothing_to_confirm")
        await self._desk.tell(issuer, message)

    async def _waiting(self, identity: ChannelIdentity, challenge_id: str) -> Grant | None:
        """Return the open question of an identity; `None` if another one was named."""
        if challenge_id and not await self._grants.is_signed(challenge_id, identity):
            return None
        question = await self._question(identity)
        if question is None or (challenge_id and challenge_id.partition(".")[0] != question.data["challenge"]):
            return None
        return question

    async def _question(self, identity: ChannelIdentity) -> Grant | None:
        return await self._desk.kept(await self._grants.place("question", identity))

    async def _counterpart(self, question: Grant) -> Grant | None:
        """Return the question of the other side about the same code and the same two people."""
        other = await self._question(question.data["other"])
        if other is None or other.data["challenge"] != question.data["challenge"]:
            return None
        return other if other.data["other"].key == question.identity.key else None

    async def _drop(self, identity: ChannelIdentity, ended: Grant) -> None:
        """Remove the question of the other side, which has nothing to decide any more."""
        theirs = await self._question(identity)
        if theirs is not None and theirs.data["challenge"] == ended.data["challenge"]:
            await self._desk.exchange(theirs.grant_id)

    async def _shown(self, question: Grant) -> LinkChallenge:
        """Return a question as a challenge, and record that it was shown: only then can it be confirmed."""
        if question.data["side"] == _ISSUED:
            await self._note_shown(question)
        return await self._challenge(question, self._words(question))

    async def _challenge(self, question: Grant, instructions: str) -> LinkChallenge:
        return LinkChallenge(
            challenge_id=await self._grants.signed(question.data["challenge"], question.identity),
            identity=question.identity,
            instructions=instructions,
            expires_at=question.expires_at,
        )

    def _words(self, question: Grant) -> str:
        key = "link.confirm_entered" if question.data["side"] == _ENTERED else "link.confirm_issued"
        return self._say(question.identity, key, other=person_phrase(question.data["other"]))

    def _say(self, identity: ChannelIdentity, key: str, **values: Any) -> str:
        command = self._command(identity)
        return self._desk.say(identity, key, command=command, confirm=CONFIRM, reject=REJECT, **values)

    async def _note_shown(self, question: Grant) -> None:
        try:
            grant = Grant(grant_id=_seen(question), identity=question.identity, expires_at=question.expires_at)
            await self._desk.keep(grant)
        except StoreError:
            # It was shown before.
            return

    async def _limit(self, what: str, identity: ChannelIdentity) -> None:
        place = await self._grants.place(what, identity)
        await take_attempt(self._desk, place, identity, most=self._each, seconds=self._expires_in)

    def _command(self, identity: ChannelIdentity) -> str:
        return self._desk.command(identity.channel, "link") or "/link"


def _seen(question: Grant) -> str:
    return f"link-shown:{question.data['challenge']}"
