"""The calls about files, for a channel."""

from frontdesk.data.file import StoredFile
from frontdesk.data.identity import Caller
from frontdesk.errors import ForbiddenError, NotFoundError
from frontdesk.host.context.channel_calls import ChannelCalls


class FileCalls(ChannelCalls):
    """The part of a `ChannelContext` that is about files."""

    async def put_file(self, caller: Caller, data: bytes, *, media_type: str, name: str = "") -> StoredFile:
        await self._allowed(caller)
        owner = await self._parts.gate.issue(caller.identity)
        if not owner:
            raise ForbiddenError
        return await self._store.files.put(owner, data, media_type=media_type, name=name)

    async def get_file(self, caller: Caller, file_id: str) -> tuple[StoredFile, bytes]:
        kept = await self._readable(caller, lambda owner: self._store.files.get(owner, file_id))
        if kept is None:
            raise NotFoundError("There is no such file.")
        return kept
