"""What a ceremony by code keeps: grants whose ids show neither a code nor a person, and signed challenges."""

import hashlib
import hmac

from frontdesk.abc.linker import LinkDesk
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import Grant
from frontdesk.errors import StoreError, TooManyRequestsError
from frontdesk.linkers import codes

_DRAWS = 3
_TRIES = 8


class CodeGrants:
    """Names grants by keyed hashes, and draws codes."""

    def __init__(self, desk: LinkDesk, name: str, key: bytes | None) -> None:
        """`key` is the operator's; without, the desk keeps one under the linker's `name`."""
        self._desk = desk
        self._name = name
        self._key = key

    async def draw(self, identity: ChannelIdentity, length: int, expires_at: float) -> tuple[Grant, str]:
        """Keep a new code of an identity's, and return its grant and the code as it is shown."""
        for _ in range(_DRAWS):
            challenge = self._desk.new_id("lch")
            code = codes.spelled(int(await self._hash("draw", self._desk.new_id("code")), 16), length)
            grant = Grant(
                grant_id=await self.of_code(code),
                identity=slim(identity),
                expires_at=expires_at,
                data={"challenge": challenge},
            )
            # Before it can be used, so that there is no code that its issuer can't take back.
            await self._note(grant)
            try:
                await self._desk.keep(grant)
            except StoreError:
                # Somebody else has this very code at the moment.
                continue
            return grant, codes.shown(code)
        raise StoreError("no code is free")

    async def _note(self, grant: Grant) -> None:
        """Note whose code it is, so that its issuer can take it back without typing it."""
        place = await self.place("issued", grant.identity)
        for _ in range(_TRIES):
            noted, now = await self._desk.kept(place), self._desk.now()
            known: dict[str, float] = {} if noted is None else noted.data["codes"]
            live = {code: ends for code, ends in known.items() if ends > now}
            note = grant.replace(grant_id=place, data={"codes": {**live, grant.grant_id: grant.expires_at}})
            if noted is not None:
                if await self._desk.exchange(place, note):
                    return
                continue
            try:
                return await self._desk.keep(note)
            except StoreError:
                # Another code of the same person's was noted meanwhile.
                continue
        raise TooManyRequestsError(retry_after=1.0)

    async def take_back(self, identity: ChannelIdentity) -> bool:
        """Use up all codes of an identity's; tell whether there were any."""
        place = await self.place("issued", identity)
        noted = await self._desk.kept(place)
        if noted is None or not await self._desk.exchange(place):
            return False
        return any([await self._desk.exchange(code) for code in noted.data["codes"]])

    async def place(self, what: str, identity: ChannelIdentity) -> str:
        """Return the id of a grant of which each identity has one."""
        return f"link-{what}:{await self._hash(what, *identity.key)}"

    async def of_code(self, code: str) -> str:
        """Return the id of the grant of a code."""
        return f"link-code:{await self._hash('code', code)}"

    async def signed(self, challenge: str, identity: ChannelIdentity) -> str:
        """Return a challenge in the form that only one identity can answer."""
        return f"{challenge}.{await self._hash('challenge', challenge, *identity.key)}"

    async def is_signed(self, challenge_id: str, identity: ChannelIdentity) -> bool:
        """Whether a challenge was made here, for this identity."""
        signed = await self.signed(challenge_id.partition(".")[0], identity)
        return hmac.compare_digest(signed.encode(), challenge_id.encode("utf-8", "surrogatepass"))

    async def _hash(self, *parts: str) -> str:
        if self._key is None:
            self._key = await self._desk.secret(self._name)
        # With its length before it no part can pass for the end of another.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def slim(identity: ChannelIdentity) -> ChannelIdentity:
    """What the other side is told of an identity, and nothing more."""
    name = identity.attributes.get("name")
    return ChannelIdentity(
        channel=identity.channel,
        native_id=identity.native_id,
        attributes={"name": name} if isinstance(name, str) else {},
    )
