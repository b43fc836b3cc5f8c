"""Run ids from the platform or the operator's factory. Otherwise the host creates them."""

from collections.abc import Callable

from frontdesk.asgi.messages import Headers
from frontdesk.errors import HookError
from frontdesk.identifiers import is_plain_id, plain_id
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest

RunIdFactory = Callable[[str | None], str]
"""Makes the id of a run from that of the run that it continues, if it continues one."""

HEADER = "x-agent-response-id"
_HEADER = b"x-agent-response-id"
_NOT_PLAIN = "The response_id_factory of this channel returned an invalid id."


def set_run_id(
    request: ChannelRequest, caller: Caller, headers: Headers, factory: RunIdFactory | None
) -> ChannelRequest:
    """Set the run id of a request. With an idempotency key, the id is derived from the key.

    The header is accepted only from callers authenticated by a trusted platform. For all others it has no effect.
    """
    if request.run_id is not None or request.idempotency_key is not None:
        return request
    given = headers.get(_HEADER) if caller.isolation is not None else None
    if given is not None:
        return request.replace(run_id=plain_id(given.decode("latin-1"), HEADER))
    if factory is None:
        return request
    session = request.session
    made = factory(request.previous_run_id or (None if session is None else session.key))
    if not is_plain_id(made):
        raise HookError(_NOT_PLAIN)
    return request.replace(run_id=made)
