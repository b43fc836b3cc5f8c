"""Lets operators reach a running host by a socket."""

from functools import partial
from pathlib import Path

from frontdesk.access.links import Links
from frontdesk.admin.actions import AdminParts
from frontdesk.admin.desk import AdminDesk
from frontdesk.admin.socket_server import SOCKET, AdminSocket, is_supported
from frontdesk.admin.speaking import Speaking
from frontdesk.data.identity import Caller
from frontdesk.data.request import ChannelRequest
from frontdesk.data.run import RunRecord
from frontdesk.delivery.push import can_push
from frontdesk.errors import AdminSocketError, StateDirectoryError
from frontdesk.host.config import AdminSocketPlace
from frontdesk.host.parts import Parts
from frontdesk.host.state.state_lock import make_private
from frontdesk.loggers import host as log


class OperatorSocket:
    """The socket of a host: where it is told to be, or in the directory that its store has to itself."""

    def __init__(self, parts: Parts, place: AdminSocketPlace) -> None:
        self._parts = parts
        self._place = place
        self._socket: AdminSocket | None = None

    @property
    def path(self) -> Path | None:
        """Return where it is to be; `None` if there is to be none."""
        if self._place is False or not is_supported():
            return None
        if isinstance(self._place, (str, Path)):
            return Path(self._place).absolute()
        directory = self._parts.store.directory
        return None if directory is None else directory / SOCKET

    async def start(self) -> None:
        """Listen; one that was not asked for, and that can't be opened, is left out."""
        path = self.path
        if path is None:
            return
        answering = AdminSocket(path, AdminDesk(admin_parts(self._parts)))
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
        """Stop listening."""
        answering, self._socket = self._socket, None
        if answering is not None:
            await answering.stop()


def admin_parts(parts: Parts) -> AdminParts:
    """Return what operators' actions need of a host."""
    links = parts.links
    if links is None:
        # Links may be left from a time when the host had a linker.
        links = Links(
            parts.store,
            parts.keys,
            parts.ids,
            parts.clock,
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
        stop_run=parts.background.cancel,
        look_for_cancelled=parts.events.look_for_cancelled,
        new_run_id=parts.gate.new_run_id,
        resume=parts.events.intake.wake,
        speaking=Speaking(
            store=parts.store,
            clock=parts.clock,
            ids=parts.ids,
            channels=tuple(parts.channels),
            deliver=parts.sender.deliver,
            submit=partial(_submit, parts),
        ),
    )


async def _submit(parts: Parts, request: ChannelRequest, caller: Caller) -> RunRecord:
    pushes = can_push(parts.channels[request.channel])
    return await parts.pipeline.submit(request, caller, pushes=pushes)
