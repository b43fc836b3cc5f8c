"""The id of a run: chosen by the platform, made by the operator's factory, or left to the host."""

from collections.abc import Callable

from frontdesk.data.identity import Caller
from frontdesk.data.request import ChannelRequest
from frontdesk.errors import HookError
from frontdesk.kit.http.asgi import Headers
from frontdesk.kit.names import is_plain_id, plain_id

RunIdFactory = Callable[[str | None], str]
"""Makes the id of a run from that of the run that it continues, if it continues one."""

HEADER = "x-agent-response-id"
_HEADER = b"x-agent-response-id"
_NOT_PLAIN = "The response_id_factory of this channel has made an id that can't be used."


def identified(
    request: ChannelRequest, caller: Caller, headers: Headers, factory: RunIdFactory | None
) -> ChannelRequest:
    """Return a request with the id of its run; a request with an idempotency key has an id that follows from the key.

    The header counts from callers whom a trusted platform has named; from everyone else it has no effect.
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
