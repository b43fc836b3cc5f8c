"""Grants of links by code, whose ids show neither a code nor a person, and signed challenges."""

import hashlib
import hmac

from frontdesk.abc.linker import LinkDesk
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import Grant
from frontdesk.errors import StoreError, TooManyRequestsError
from frontdesk.kit.chat.commands import LOCALE
from frontdesk.linkers import codes

_DRAWS = 3
_TRIES = 8
_SEEN = ("name", LOCALE)


class CodeGrants:
    """Names grants by keyed hashes, and draws codes."""

    def __init__(self, desk: LinkDesk, name: str, key: bytes | None) -> None:
        """Hash with the operator's `key`; without one, with a secret that the desk keeps under the linker's `name`."""
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
            # Before the code can be used, so that its issuer can always revoke it.
            await self._record_issuer(grant)
            try:
                await self._desk.keep(grant)
            except StoreError:
                # Another identity has the same code at the moment.
                continue
            return grant, codes.shown(code)
        raise StoreError("no code is free")

    async def _record_issuer(self, grant: Grant) -> None:
        """Record the issuer of a code, who can then revoke it without typing it."""
        place = await self.place("issued", grant.identity)
        for _ in range(_TRIES):
            record, now = await self._desk.kept(place), self._desk.now()
            issued: dict[str, float] = {} if record is None else record.data["codes"]
            live = {code: ends for code, ends in issued.items() if ends > now}
            note = grant.replace(grant_id=place, data={"codes": {**live, grant.grant_id: grant.expires_at}})
            if record is not None:
                if await self._desk.exchange(place, note):
                    return
                continue
            try:
                return await self._desk.keep(note)
            except StoreError:
                # Another code of the same identity was recorded meanwhile.
                continue
        raise TooManyRequestsError(retry_after=1.0)

    async def take_back(self, identity: ChannelIdentity) -> bool:
        """Use up all codes of an identity's; tell whether there were any."""
        place = await self.place("issued", identity)
        record = await self._desk.kept(place)
        if record is None or not await self._desk.exchange(place):
            return False
        return any([await self._desk.exchange(code) for code in record.data["codes"]])

    async def place(self, what: str, identity: ChannelIdentity) -> str:
        """Return the id of a grant of which each identity has one."""
        return f"link-{what}:{await self._hash(what, *identity.key)}"

    async def of_code(self, code: str) -> str:
        """Return the id of the grant of a code."""
        return f"link-code:{await self._hash('code', code)}"

    async def of_beginning(self, code: str) -> str:
        """Return the place at which attempts with codes that begin alike are counted."""
        return f"link-tried:{await self._hash('tried', codes.beginning(code))}"

    async def signed(self, challenge: str, identity: ChannelIdentity) -> str:
        """Return a challenge in the form that only one identity can answer."""
        return f"{challenge}.{await self._hash('challenge', challenge, *identity.key)}"

    async def is_signed(self, challenge_id: str, identity: ChannelIdentity) -> bool:
        """Tell whether a challenge was made here, for this identity."""
        signed = await self.signed(challenge_id.partition(".")[0], identity)
        return hmac.compare_digest(signed.encode(), challenge_id.encode("utf-8", "surrogatepass"))

    async def _hash(self, *parts: str) -> str:
        if self._key is None:
            self._key = await self._desk.secret(self._name)
        # Each part has its length before it, so that no other split gives the same text.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def slim(identity: ChannelIdentity) -> ChannelIdentity:
    """Return an identity with only the attributes that the other side may see: a name, and a language to be told in."""
    attributes = {name: value for name in _SEEN if isinstance(value := identity.attributes.get(name), str)}
    return ChannelIdentity(channel=identity.channel, native_id=identity.native_id, attributes=attributes)
