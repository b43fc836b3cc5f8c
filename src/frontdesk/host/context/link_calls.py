"""The calls of linking for a channel: each is made for a caller who may link, and about that caller alone."""

from frontdesk.abc.linker import IdentityLinker, SupportsLinkQuestions, SupportsLinkReturn, SupportsLinkRoutes
from frontdesk.access.links import Links
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.link import LinkChallenge, LinkRecord, LinkStatus, Whoami
from frontdesk.errors import UnauthenticatedError, UnsupportedError
from frontdesk.host.context.scoped_calls import ScopedCalls

_NOBODY = "An anonymous caller has no account to link."
_NO_LINKER = "This host has nothing to link accounts with."


class LinkCalls(ScopedCalls):
    """The part of a `ChannelContext` that is about links."""

    async def begin_link(self, caller: Caller, *, return_to: str | None = None) -> LinkChallenge:
        linker, _ = await self._linker(caller)
        if return_to is not None and isinstance(linker, SupportsLinkReturn):
            return await linker.begin_from(caller.identity, return_to)
        return await linker.begin(caller.identity)

    async def complete_link(self, caller: Caller, proof: str) -> LinkRecord | LinkChallenge | None:
        return await (await self._linker(caller))[0].complete(caller.identity, proof)

    async def unlink(self, caller: Caller) -> bool:
        linker, _ = await self._linker(caller)
        linked = await linker.resolve(caller.identity) is not None
        if linked:
            await linker.unlink(caller.identity)
        return linked

    async def whoami(self, caller: Caller) -> Whoami:
        return await (await self._linker(caller))[1].whoami(caller.identity)

    async def link_status(self, caller: Caller) -> LinkStatus | None:
        if self._parts.links is None or self._parts.linker is None:
            await self._not_denied(caller)
            return None
        linker, links = await self._linker(caller)
        return LinkStatus(
            account=await links.whoami(caller.identity),
            name=await links.verified_name(caller.identity),
            way="sign_in" if isinstance(linker, SupportsLinkRoutes) else "code",
            question=await linker.question_of(caller.identity) if isinstance(linker, SupportsLinkQuestions) else None,
        )

    async def home_of(self, caller: Caller, *, fresh: bool = False) -> ChannelIdentity:
        links = self._parts.links
        return caller.identity if links is None else await links.home_of(caller.identity, fresh=fresh)

    async def _linker(self, caller: Caller) -> tuple[IdentityLinker, Links]:
        await self._not_denied(caller)
        if self._parts.links is None or self._parts.linker is None:
            raise UnsupportedError(_NO_LINKER)
        return self._parts.linker, self._parts.links

    async def _not_denied(self, caller: Caller) -> None:
        """Refuse a caller who may not come in; one who has to link first may link."""
        if caller.anonymous:
            raise UnauthenticatedError(_NOBODY)
        decision = await self._parts.gate.decide(caller, self.channel)
        self._parts.gate.not_denied(decision, caller.identity)
