"""Links accounts by a code: `/link` on one channel, `/link CODE` on another, and `/link confirm` on both.

The code alone links no accounts. Each side is shown the other account and must confirm. The side that entered the code
confirms first, which uses up the code. Then the issuer of the code confirms. Until the last confirmation either side
can refuse, which invalidates the code.

A person has at most one open link question (`link-question`), so that a confirmation cannot apply to another one. The
question of the side that entered the code lasts as long as that of the issuer, so both can refuse until the end. No
stored value contains a code: grants are found by a keyed hash of it.
"""

import hashlib
import hmac
from typing import Any

from frontdesk.chat.commands import LOCALE
from frontdesk.chat.i18n.wording import person_phrase
from frontdesk.errors import LinkRefusedError, StoreError, TooManyRequestsError
from frontdesk.interfaces.linker import LinkerContext, SupportsLinkQuestions
from frontdesk.linkers.attempts import take_attempt
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import Grant, LinkChallenge, LinkProof, LinkQuestion, LinkRecord
from frontdesk.models.settings import check_settings, count_finding
from frontdesk.secret import Secret, reveal

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
BITS_PER_LETTER = 5
_LOOKS_LIKE = str.maketrans("OIL", "011", " -–_.")
_MAX_ATTEMPTS_TYPED = 100
_GROUP_LENGTH = 4


def spell(number: int, length: int) -> str:
    """Return a code of `length` letters from the low bits of a number."""
    return "".join(ALPHABET[(number >> (BITS_PER_LETTER * place)) % len(ALPHABET)] for place in reversed(range(length)))


def format_code(code: str) -> str:
    """Return a code for display, in groups of four."""
    return "-".join(code[start : start + _GROUP_LENGTH] for start in range(0, len(code), _GROUP_LENGTH))


def get_prefix(code: str) -> str:
    """Return the prefix of a code by which attempts are counted. It is displayed as the first group."""
    return code[:_GROUP_LENGTH]


def read(typed: str, length: int) -> str | None:
    """Return the normalized code, in any case and with any dashes, or `None` if it is malformed."""
    if len(typed) > _MAX_ATTEMPTS_TYPED:
        return None
    code = typed.upper().translate(_LOOKS_LIKE)
    return code if len(code) == length and not set(code) - set(ALPHABET) else None


_MAX_DRAWS = 3
_MAX_TRIES = 8
_SEEN = ("name", LOCALE)


class CodeGrants:
    """Generates codes and derives grant ids as keyed hashes."""

    def __init__(self, host: LinkerContext, name: str, key: bytes | None) -> None:
        """Hash with the operator's `key`, or with a secret that the host stores under the linker's `name`."""
        self._host = host
        self._name = name
        self._key = key

    async def draw(self, identity: ChannelIdentity, length: int, expires_at: float) -> tuple[Grant, str]:
        """Store a new code for an identity. Return its grant and the code for display."""
        for _ in range(_MAX_DRAWS):
            challenge = self._host.new_id("lch")
            code = spell(int(await self._hash("draw", self._host.new_id("code")), 16), length)
            grant = Grant(
                grant_id=await self.of_code(code),
                identity=slim(identity),
                expires_at=expires_at,
                data={"challenge": challenge},
            )
            # Before the code can be used, so that its issuer can always revoke it.
            await self._record_issuer(grant)
            try:
                await self._host.keep(grant)
            except StoreError:
                # Another identity has the same code at the moment.
                continue
            return grant, format_code(code)
        raise StoreError("no unused code found")

    async def _record_issuer(self, grant: Grant) -> None:
        """Record the issuer of a code, so that the issuer can revoke it without typing it."""
        place = await self.place("issued", grant.identity)
        for _ in range(_MAX_TRIES):
            record, now = await self._host.kept(place), self._host.now()
            issued: dict[str, float] = {} if record is None else record.data["codes"]
            live = {code: ends for code, ends in issued.items() if ends > now}
            note = grant.replace(grant_id=place, data={"codes": {**live, grant.grant_id: grant.expires_at}})
            if record is not None:
                if await self._host.exchange(place, note):
                    return
                continue
            try:
                return await self._host.keep(note)
            except StoreError:
                # Another code of the same identity was recorded meanwhile.
                continue
        raise TooManyRequestsError(retry_after=1.0)

    async def take_back(self, identity: ChannelIdentity) -> bool:
        """Use up all codes of an identity. Return True if there were any."""
        place = await self.place("issued", identity)
        record = await self._host.kept(place)
        if record is None or not await self._host.exchange(place):
            return False
        return any([await self._host.exchange(code) for code in record.data["codes"]])

    async def place(self, what: str, identity: ChannelIdentity) -> str:
        """Return the id of a grant that exists once per identity."""
        return f"link-{what}:{await self._hash(what, *identity.key)}"

    async def of_code(self, code: str) -> str:
        """Return the grant id of a code."""
        return f"link-code:{await self._hash('code', code)}"

    async def of_beginning(self, code: str) -> str:
        """Return the id under which attempts with the same code prefix are counted."""
        return f"link-tried:{await self._hash('tried', get_prefix(code))}"

    async def sign(self, challenge: str, identity: ChannelIdentity) -> str:
        """Return a challenge signed for one identity, so that no other can answer it."""
        return f"{challenge}.{await self._hash('challenge', challenge, *identity.key)}"

    async def is_signed(self, challenge_id: str, identity: ChannelIdentity) -> bool:
        signed = await self.sign(challenge_id.partition(".")[0], identity)
        return hmac.compare_digest(signed.encode(), challenge_id.encode("utf-8", "surrogatepass"))

    async def _hash(self, *parts: str) -> str:
        if self._key is None:
            self._key = await self._host.secret(self._name)
        # Each part has its length before it, so that no other split gives the same text.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def slim(identity: ChannelIdentity) -> ChannelIdentity:
    """Return an identity with only the attributes that the other side may see: name and language."""
    attributes = {name: value for name in _SEEN if isinstance(value := identity.attributes.get(name), str)}
    return ChannelIdentity(channel=identity.channel, native_id=identity.native_id, attributes=attributes)


CONFIRM, REJECT = "confirm", "reject"
_YES, _NO = (CONFIRM, "yes"), (REJECT, "no", "cancel")
_ENTERED, _ISSUED = "entered", "issued"
_MIN_CODE_LENGTH = 8
_MIN_SECRET_LENGTH = 16
_WRONG = "This code is invalid. Ask for a new one."
_NOTHING = "There is nothing to confirm."
_BUSY = "The account that issued this code has another question to answer first. Answer it there, and confirm again."


class OneTimeCodeIdentityLinker(SupportsLinkQuestions):
    """Proves that two identities belong to one person: a code shown on one channel is typed on the other."""

    name = "one_time_code"
    gives_claims = False
    _host: LinkerContext
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
        """Validate the settings. Codes and the windows for counting attempts last for `expires_in` seconds.

        Wrong codes count against the identity that enters them and against all codes with the same prefix. More
        attackers therefore do not make guessing easier, and no one can use up the attempts of everybody.

        `secret` is the key for hashing codes and signing challenges. Without one, the host keeps a random key in its
        store.
        """
        if not _MIN_CODE_LENGTH <= code_length <= 40:
            raise ValueError(f"code_length must be from {_MIN_CODE_LENGTH} to 40, shorter codes can be guessed")
        if not 30 <= expires_in <= 3600:
            raise ValueError("expires_in must be from 30 to 3600 seconds")
        check_settings(
            "OneTimeCodeIdentityLinker",
            count_finding("code_length", code_length),
            count_finding("max_attempts_per_identity", max_attempts_per_identity),
            count_finding("max_attempts_per_code", max_attempts_per_code),
        )
        if secret is not None and len(reveal(secret)) < _MIN_SECRET_LENGTH:
            raise ValueError(f"secret must have at least {_MIN_SECRET_LENGTH} characters")
        self._length = code_length
        self._expires_in = expires_in
        self._each = max_attempts_per_identity
        self._per_code = max_attempts_per_code
        self._key: bytes | None = None if secret is None else hashlib.sha256(reveal(secret).encode()).digest()

    def use(self, host: LinkerContext) -> None:
        self._host = host
        self._grants = CodeGrants(host, self.name, self._key)

    async def begin(self, identity: ChannelIdentity) -> LinkChallenge:
        waiting = await self._question(identity)
        if waiting is not None:
            return await self._show(waiting)
        await self._limit("begun", identity)
        grant, code = await self._grants.draw(identity, self._length, self._host.now() + self._expires_in)
        minutes = max(1, round(self._expires_in / 60))
        return LinkChallenge(
            challenge_id=await self._grants.sign(grant.data["challenge"], identity),
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
        return await self._host.find_link(identity)

    async def find_question(self, identity: ChannelIdentity) -> LinkQuestion | None:
        question = await self._question(identity)
        if question is None:
            return None
        challenge = await self._show(question)
        confirmed = question.data["side"] == _ENTERED and await self._counterpart(question) is not None
        return LinkQuestion(
            challenge_id=challenge.challenge_id,
            other=question.data["other"],
            waits_for="other" if confirmed else "you",
            expires_at=question.expires_at,
        )

    async def unlink(self, identity: ChannelIdentity) -> None:
        await self._host.part(identity, here=identity)

    async def _enter(self, identity: ChannelIdentity, typed: str) -> LinkChallenge:
        """Ask the person who entered a code to confirm its issuer. The code stays valid."""
        await self._limit("entered", identity)
        waiting = await self._question(identity)
        if waiting is not None:
            return await self._show(waiting)
        code = read(typed, self._length)
        grant = None if code is None else await self._find_grant(identity, code)
        # A code that is wrong, expired, used or one's own gets the same answer.
        if grant is None or grant.identity.key == identity.key:
            raise LinkRefusedError(_WRONG, code="code_refused")
        question = Grant(
            grant_id=await self._grants.place("question", identity),
            identity=slim(identity),
            expires_at=self._host.now() + self._expires_in,
            data={**grant.data, "side": _ENTERED, "other": grant.identity, "code": grant.grant_id},
        )
        try:
            await self._host.keep(question)
        except StoreError:
            # Another question came first, which must be answered before this one is asked.
            raise LinkRefusedError(_WRONG, code="code_refused") from None
        return await self._show(question)

    async def _find_grant(self, identity: ChannelIdentity, code: str) -> Grant | None:
        """Return the grant of a code. A wrong code counts against its prefix, even if no code has that prefix."""
        place = await self._grants.of_beginning(code)
        attempt = await take_attempt(self._host, place, identity, most=self._per_code, seconds=self._expires_in)
        grant = await self._host.kept(await self._grants.of_code(code))
        if grant is not None:
            await self._host.exchange(attempt)
        return grant

    async def _confirm(self, identity: ChannelIdentity, challenge_id: str) -> LinkRecord | LinkChallenge:
        question = await self._find_waiting(identity, challenge_id)
        if question is None:
            raise LinkRefusedError(_NOTHING, code="nothing_to_confirm")
        if question.data["side"] == _ENTERED:
            return await self._ask_issuer(question)
        if await self._host.kept(_build_seen_name(question)) is None:
            return await self._show(question)
        other: ChannelIdentity = question.data["other"]
        proof = LinkProof(grant_id=question.grant_id, linker=self.name, identity=other, survivor=identity)
        record = await self._host.join(proof, here=identity)
        await self._drop(other, question)
        return record

    async def _ask_issuer(self, mine: Grant) -> LinkChallenge:
        issuer: ChannelIdentity = mine.data["other"]
        ask = Grant(
            grant_id=await self._grants.place("question", issuer),
            identity=issuer,
            expires_at=mine.expires_at,
            data={"challenge": mine.data["challenge"], "side": _ISSUED, "other": mine.identity},
        )
        if await self._host.exchange(mine.data["code"], ask):
            if await self._host.tell(issuer, self._words(ask)):
                await self._note_shown(ask)
        elif await self._counterpart(mine) is None:
            if await self._host.kept(mine.data["code"]) is not None:
                raise LinkRefusedError(_BUSY, code="link_busy")
            await self._host.exchange(mine.grant_id)
            raise LinkRefusedError(_WRONG, code="code_refused")
        words = self._say(mine.identity, "link.go_back", other=person_phrase(issuer), there=self._command(issuer))
        return await self._challenge(mine, words)

    async def _reject(self, identity: ChannelIdentity, challenge_id: str) -> None:
        question = await self._find_waiting(identity, challenge_id)
        if question is None:
            if challenge_id or not await self._grants.take_back(identity):
                raise LinkRefusedError(_NOTHING, code="nothing_to_confirm")
        elif question.data["side"] == _ISSUED:
            await self._refuse_entered(question)
        else:
            await self._refuse_issued(question)

    async def _refuse_entered(self, ask: Grant) -> None:
        """Reject the person who entered a code, on behalf of its issuer."""
        if not await self._host.exchange(ask.grant_id):
            raise LinkRefusedError(_NOTHING, code="nothing_to_confirm")
        other: ChannelIdentity = ask.data["other"]
        await self._drop(other, ask)
        await self._host.tell(other, self._say(other, "link.refused_by", other=person_phrase(ask.identity)))

    async def _refuse_issued(self, mine: Grant) -> None:
        """Reject the issuer, before or after the other side's confirmation, while nothing is linked."""
        issuer: ChannelIdentity = mine.data["other"]
        # The code first: a confirmation at the same moment turns it into the question that is looked for next.
        message = None
        if await self._host.exchange(mine.data["code"]):
            # A person who has not confirmed is not named.
            message = self._say(issuer, "link.code_refused")
        else:
            ask = await self._counterpart(mine)
            if ask is not None and await self._host.exchange(ask.grant_id):
                message = self._say(issuer, "link.refused_by", other=person_phrase(mine.identity))
        await self._host.exchange(mine.grant_id)
        if message is None:
            raise LinkRefusedError(_NOTHING, code="nothing_to_confirm")
        await self._host.tell(issuer, message)

    async def _find_waiting(self, identity: ChannelIdentity, challenge_id: str) -> Grant | None:
        """Return the open question of an identity, or `None` if `challenge_id` names another one."""
        if challenge_id and not await self._grants.is_signed(challenge_id, identity):
            return None
        question = await self._question(identity)
        if question is None or (challenge_id and challenge_id.partition(".")[0] != question.data["challenge"]):
            return None
        return question

    async def _question(self, identity: ChannelIdentity) -> Grant | None:
        return await self._host.kept(await self._grants.place("question", identity))

    async def _counterpart(self, question: Grant) -> Grant | None:
        """Return the other side's question about the same code and the same two people."""
        other = await self._question(question.data["other"])
        if other is None or other.data["challenge"] != question.data["challenge"]:
            return None
        return other if other.data["other"].key == question.identity.key else None

    async def _drop(self, identity: ChannelIdentity, ended: Grant) -> None:
        theirs = await self._question(identity)
        if theirs is not None and theirs.data["challenge"] == ended.data["challenge"]:
            await self._host.exchange(theirs.grant_id)

    async def _show(self, question: Grant) -> LinkChallenge:
        """Return a question as a challenge and record that it was shown, which confirmation requires."""
        if question.data["side"] == _ISSUED:
            await self._note_shown(question)
        return await self._challenge(question, self._words(question))

    async def _challenge(self, question: Grant, instructions: str) -> LinkChallenge:
        return LinkChallenge(
            challenge_id=await self._grants.sign(question.data["challenge"], question.identity),
            identity=question.identity,
            instructions=instructions,
            expires_at=question.expires_at,
        )

    def _words(self, question: Grant) -> str:
        key = "link.confirm_entered" if question.data["side"] == _ENTERED else "link.confirm_issued"
        return self._say(question.identity, key, other=person_phrase(question.data["other"]))

    def _say(self, identity: ChannelIdentity, key: str, **values: Any) -> str:
        command = self._command(identity)
        return self._host.say(identity, key, command=command, confirm=CONFIRM, reject=REJECT, **values)

    async def _note_shown(self, question: Grant) -> None:
        try:
            grant = Grant(
                grant_id=_build_seen_name(question), identity=question.identity, expires_at=question.expires_at
            )
            await self._host.keep(grant)
        except StoreError:
            # It was shown before.
            return

    async def _limit(self, what: str, identity: ChannelIdentity) -> None:
        place = await self._grants.place(what, identity)
        await take_attempt(self._host, place, identity, most=self._each, seconds=self._expires_in)

    def _command(self, identity: ChannelIdentity) -> str:
        return self._host.command(identity.channel, "link") or "/link"


def _build_seen_name(question: Grant) -> str:
    return f"link-shown:{question.data['challenge']}"
