"""Serves the operators' socket of a running host."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from frontdesk.access.joining import PrincipalJoiner
from frontdesk.access.links import Links
from frontdesk.access.recipients import not_admitted
from frontdesk.admin.actions import AdminParts
from frontdesk.admin.messages import AdminMessagingDeps
from frontdesk.admin.service import AdminService
from frontdesk.admin.socket_file import SOCKET, is_supported
from frontdesk.delivery.push import can_push
from frontdesk.errors import AdminSocketError, ForbiddenError, StateDirectoryError
from frontdesk.host.config import AdminSocketPlace
from frontdesk.host.wiring import Components
from frontdesk.loggers import host as log
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest
from frontdesk.models.run import RunRecord
from frontdesk.state_dir.lock import make_private

if TYPE_CHECKING:
    from frontdesk.admin.http_api import AdminSocket


class OperatorSocket:
    """The admin socket of a host: at its configured path, or in the directory that belongs to its store."""

    def __init__(self, parts: Components, place: AdminSocketPlace) -> None:
        self._parts = parts
        self._place = place
        self._socket: AdminSocket | None = None

    @property
    def path(self) -> Path | None:
        """Return the path of the socket, or None without one."""
        if self._place is False or not is_supported():
            return None
        if isinstance(self._place, (str, Path)):
            return Path(self._place).absolute()
        directory = self._parts.store.directory
        return None if directory is None else directory / SOCKET

    async def start(self) -> None:
        """Start listening. A socket that was not configured explicitly is skipped if it can't be opened."""
        path = self.path
        if path is None:
            return
        # A host on another server has no use for uvicorn until here.
        from frontdesk.admin.http_api import AdminSocket

        answering = AdminSocket(path, AdminService(admin_parts(self._parts)))
        try:
            # Whoever can change the directory could put another socket in its place.
            make_private(path.parent)
            await answering.start()
        except (AdminSocketError, StateDirectoryError) as error:
            if self._place is not None:
                raise
            log.warning("%s Commands for operators need the host to be stopped.", error)
            return
        self._socket = answering

    async def stop(self) -> None:
        answering, self._socket = self._socket, None
        if answering is not None:
            await answering.stop()


def admin_parts(parts: Components) -> AdminParts:
    links = parts.links
    if links is None:
        # Links may be left from a time when the host had a linker.
        links = Links(
            parts.store,
            parts.keys,
            parts.ids,
            parts.clock,
            policy=parts.link_policy,
            messenger=parts.notifier,
            questions=parts.decisions,
            changed=parts.notifier.links_changed,
            texts=parts.texts,
        )
    return AdminParts(
        store=parts.store,
        clock=parts.clock,
        deliveries=parts.deliveries,
        decisions=parts.decisions,
        links=links,
        joiner=PrincipalJoiner(parts.store, links, parts.clock, parts.ids),
        reload_principals=parts.principals.reload,
        stop_run=parts.background.cancel,
        look_for_cancelled=parts.events.look_for_cancelled,
        new_run_id=parts.gate.new_run_id,
        resume=parts.events.intake.wake,
        speaking=AdminMessagingDeps(
            store=parts.store,
            clock=parts.clock,
            ids=parts.ids,
            channels=tuple(parts.channels),
            deliver=parts.sender.deliver,
            check=parts.recipients.require_known,
            submit=partial(_submit, parts),
        ),
    )


async def _submit(parts: Components, request: ChannelRequest, caller: Caller) -> RunRecord:
    pushes = can_push(parts.channels[request.channel])
    try:
        return await parts.pipeline.submit(request, caller, pushes=pushes)
    except ForbiddenError as error:
        raise not_admitted(caller.identity, error) from None
