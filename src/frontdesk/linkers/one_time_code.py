"""Links two channels by a code: `/link` here, `/link CODE` there, and `/link confirm` here again.

The code alone links nobody. Who enters it is told whose it is, and who asked for it is told who has entered it and must
say that this is them; so a code that was read over a shoulder is not enough. Nothing that is kept shows a code: a grant
is found by a keyed hash of it.
"""

import hashlib
import hmac

from frontdesk.abc.linker import LinkDesk
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import Grant, LinkChallenge, LinkProof, LinkRecord
from frontdesk.errors import LinkRefusedError, StoreError
from frontdesk.kit.people import told_as
from frontdesk.kit.secrets import Secret, revealed
from frontdesk.linkers import codes
from frontdesk.linkers.attempts import take_attempt

CONFIRM, REJECT = "confirm", "reject"
_SHORTEST = 8
_DRAWS = 3
_SHORTEST_SECRET = 16
_WRONG = "This code does not work. Ask for a new one."
_NOTHING = "There is nothing to confirm."


class OneTimeCodeIdentityLinker:
    """Proves that two identities are one person's by a code that is shown on one channel and typed on the other."""

    name = "one_time_code"
    gives_claims = False
    _desk: LinkDesk

    def __init__(
        self,
        *,
        code_length: int = 8,
        expires_in: float = 900.0,
        max_attempts_per_identity: int = 5,
        max_attempts: int = 1_000,
        secret: str | Secret | None = None,
    ) -> None:
        """A code lives for `expires_in` seconds, and so long attempts are counted: those of one, and those of all.

        `secret` is what codes are hashed and challenges signed with; without, the host makes one and keeps it in its
        store.
        """
        if not _SHORTEST <= code_length <= 40:
            raise ValueError(f"code_length must be from {_SHORTEST} to 40: fewer letters could be guessed")
        if not 30 <= expires_in <= 3600:
            raise ValueError("expires_in must be from 30 to 3600 seconds")
        if max_attempts_per_identity < 1 or max_attempts < max_attempts_per_identity:
            raise ValueError("max_attempts_per_identity must be at least 1, and max_attempts not less than that")
        if secret is not None and len(revealed(secret)) < _SHORTEST_SECRET:
            raise ValueError(f"secret must have at least {_SHORTEST_SECRET} characters")
        self._length = code_length
        self._expires_in = expires_in
        self._each = max_attempts_per_identity
        self._all = max_attempts
        self._secret = None if secret is None else Secret(secret)
        self._key: bytes | None = None if secret is None else hashlib.sha256(revealed(secret).encode()).digest()

    def use(self, desk: LinkDesk) -> None:
        self._desk = desk

    async def begin(self, identity: ChannelIdentity) -> LinkChallenge:
        waiting = await self._desk.kept(await self._place("ask", identity))
        if waiting is not None:
            return await self._asked(waiting)
        await self._limit("begun", identity)
        grant, code = await self._drawn(identity)
        word = self._command(identity)
        minutes = max(1, round(self._expires_in / 60))
        return LinkChallenge(
            challenge_id=await self._signed(grant.data["challenge"], identity),
            identity=identity,
            instructions=f"Your code is {code}. From your other account, send me {word} {code} within {minutes} "
            "minutes, then come back here to confirm it. Show the code to nobody.",
            code=code,
            expires_at=grant.expires_at,
        )

    async def complete(self, identity: ChannelIdentity, proof: str) -> LinkRecord | LinkChallenge | None:
        word, _, challenge_id = proof.strip().partition(" ")
        if word.lower() == CONFIRM:
            return await self._confirm(identity, challenge_id.strip())
        if word.lower() == REJECT:
            return await self._reject(identity, challenge_id.strip())
        return await self._enter(identity, proof)

    async def resolve(self, identity: ChannelIdentity) -> LinkRecord | None:
        return await self._desk.link_of(identity)

    async def unlink(self, identity: ChannelIdentity) -> None:
        await self._desk.part(identity, here=identity)

    async def _drawn(self, identity: ChannelIdentity) -> tuple[Grant, str]:
        expires_at = self._desk.now() + self._expires_in
        for _ in range(_DRAWS):
            challenge = self._desk.new_id("lch")
            code = codes.spelled(int(await self._hash("draw", self._desk.new_id("code")), 16), self._length)
            grant = Grant(
                grant_id=await self._code_id(code),
                identity=_slim(identity),
                expires_at=expires_at,
                data={"challenge": challenge},
            )
            try:
                await self._desk.keep(grant)
            except StoreError:
                # Somebody else has this very code at the moment.
                continue
            return grant, codes.shown(code)
        raise StoreError("no code is free")

    async def _enter(self, identity: ChannelIdentity, typed: str) -> LinkChallenge:
        await self._limit("entered", identity)
        # Somebody with many identities could guess as often as all of them together.
        await take_attempt(self._desk, "link-entered", identity, most=self._all, seconds=self._expires_in)
        code = codes.read(typed, self._length)
        grant = None if code is None else await self._desk.kept(await self._code_id(code))
        # Wrong, ended, used and one's own look alike.
        if grant is None or grant.identity.key == identity.key:
            raise LinkRefusedError(_WRONG, code="code_refused")
        issuer = grant.identity
        ask = Grant(
            grant_id=await self._place("ask", issuer),
            identity=issuer,
            expires_at=self._desk.now() + self._expires_in,
            data={"challenge": grant.data["challenge"], "other": _slim(identity)},
        )
        if not await self._desk.exchange(grant.grant_id, ask):
            raise LinkRefusedError(_WRONG, code="code_refused")
        challenge = await self._asked(ask, shown=False)
        if await self._desk.tell(issuer, challenge.instructions):
            await self._show(ask)
        return LinkChallenge(
            challenge_id=await self._signed(ask.data["challenge"], identity),
            identity=identity,
            instructions=f"This code is from {told_as(issuer)}. Confirm it there, and the two are linked. "
            "If that is not you, do nothing.",
            expires_at=ask.expires_at,
        )

    async def _asked(self, ask: Grant, *, shown: bool = True) -> LinkChallenge:
        """The question that waits for whoever has asked for the code; only what was shown can be confirmed."""
        word = self._command(ask.identity)
        if shown:
            await self._show(ask)
        return LinkChallenge(
            challenge_id=await self._signed(ask.data["challenge"], ask.identity),
            identity=ask.identity,
            instructions=f"{told_as(ask.data['other'])} has entered your code, and wants to be linked with this "
            f"account. If that is you, answer {word} {CONFIRM}. If it is not, answer {word} {REJECT}.",
            expires_at=ask.expires_at,
        )

    async def _confirm(self, identity: ChannelIdentity, challenge_id: str) -> LinkRecord | LinkChallenge:
        ask = await self._waiting(identity, challenge_id)
        if await self._desk.kept(_seen(ask)) is None:
            return await self._asked(ask)
        proof = LinkProof(grant_id=ask.grant_id, linker=self.name, identity=ask.data["other"], survivor=identity)
        return await self._desk.join(proof, here=identity)

    async def _reject(self, identity: ChannelIdentity, challenge_id: str) -> None:
        ask = await self._waiting(identity, challenge_id)
        if await self._desk.exchange(ask.grant_id):
            await self._desk.tell(ask.data["other"], f"{told_as(identity)} has refused to be linked with this account.")

    async def _waiting(self, identity: ChannelIdentity, challenge_id: str) -> Grant:
        if challenge_id and not await self._is_signed(challenge_id, identity):
            raise LinkRefusedError(_NOTHING, code="nothing_to_confirm")
        ask = await self._desk.kept(await self._place("ask", identity))
        if ask is None or (challenge_id and challenge_id.partition(".")[0] != ask.data["challenge"]):
            raise LinkRefusedError(_NOTHING, code="nothing_to_confirm")
        return ask

    async def _show(self, ask: Grant) -> None:
        try:
            await self._desk.keep(Grant(grant_id=_seen(ask), identity=ask.identity, expires_at=ask.expires_at))
        except StoreError:
            # It was shown before.
            return

    async def _limit(self, what: str, identity: ChannelIdentity) -> None:
        place = await self._place(what, identity)
        await take_attempt(self._desk, place, identity, most=self._each, seconds=self._expires_in)

    def _command(self, identity: ChannelIdentity) -> str:
        return self._desk.command(identity.channel, "link") or "/link"

    async def _place(self, what: str, identity: ChannelIdentity) -> str:
        return f"link-{what}:{await self._hash(what, *identity.key)}"

    async def _code_id(self, code: str) -> str:
        return f"link-code:{await self._hash('code', code)}"

    async def _signed(self, challenge: str, identity: ChannelIdentity) -> str:
        return f"{challenge}.{await self._hash('challenge', challenge, *identity.key)}"

    async def _is_signed(self, challenge_id: str, identity: ChannelIdentity) -> bool:
        signed = await self._signed(challenge_id.partition(".")[0], identity)
        return hmac.compare_digest(signed.encode(), challenge_id.encode("utf-8", "surrogatepass"))

    async def _hash(self, *parts: str) -> str:
        if self._key is None:
            self._key = await self._desk.secret(self.name)
        # With its length before it no part can pass for the end of another.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _seen(ask: Grant) -> str:
    return f"link-shown:{ask.data['challenge']}"


def _slim(identity: ChannelIdentity) -> ChannelIdentity:
    """What the other side is told of an identity, and nothing more."""
    name = identity.attributes.get("name")
    return ChannelIdentity(
        channel=identity.channel,
        native_id=identity.native_id,
        attributes={"name": name} if isinstance(name, str) else {},
    )
