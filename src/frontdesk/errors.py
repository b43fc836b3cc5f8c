"""The errors that Frontdesk raises.

    FrontdeskError
    ├── ChannelConfigurationError      found when the host is built; all findings at once
    ├── CodecError                     a value has no JSON form, or a record can't be read
    │   ├── BrokenRecordError          no version can read it; the record is set aside
    │   └── UnreadableRecordError      a newer version may read it; the record is kept, and it is a RequestError too
    │       └── UnknownVersionError
    ├── StateDirectoryError            the host can't keep its state where it was told to
    │   └── StateDirectoryInUseError   another host does already
    ├── StoreError                     the state store refused a write
    │   ├── StaleTurnError             the turn was fenced off: a newer one holds the session
    │   ├── LostRunError               a background run was fenced off: another process works on it, or none may
    │   ├── LostEventError             an event was fenced off: another process answers it, or has
    │   ├── LostDeliveryError          a delivery was changed by another meanwhile
    │   ├── ApprovalExistsError        the owner has an approval with this id
    │   ├── LostAnswerError            another run has taken over the answer to an approval, or it was cancelled
    │   ├── IdentityChangedError       the links or the key of an identity were changed by another meanwhile
    │   └── DeliveryExistsError        a delivery with this idempotency key was made before
    ├── LeadershipLostError            another process may hold the leadership by now, so its body was cancelled
    ├── SealError                      what a channel has kept can't be opened with the keys of this host
    ├── TaskError                      a task can't be registered or scheduled so
    ├── PushError                      a platform did not take what was sent, and may if it is sent again
    │   ├── PushRefusedError           it never will
    │   ├── PushLimitedError           it will after `retry_after`
    │   └── PushUnknownError           sent, and no answer was seen: it may have been taken
    └── RequestError                   shown to the caller, in the channel's own shape
        ├── InvalidRequestError    400
        ├── UnauthenticatedError   401
        ├── ForbiddenError         403
        │   ├── LinkRequiredError
        │   └── LinkRefusedError
        ├── NotFoundError          404
        ├── MethodNotAllowedError  405
        ├── BodyTimeoutError       408
        ├── ConflictError          409
        │   ├── SessionRequiredError
        │   ├── SessionBusyError
        │   ├── RunExistsError
        │   └── UnlinkedError
        ├── BodyTooLargeError      413
        ├── UnsupportedMediaError  415
        ├── HookError              422
        ├── SessionTooLargeError   422
        ├── KeyReusedError         422
        ├── TooManyRequestsError   429
        ├── InternalError          500
        ├── TargetError            500
        ├── NotStorableError       500
        ├── ApprovalIdError        500
        ├── UnsupportedError       501
        └── UnavailableError       503
            ├── StoreUnavailableError
            └── UnreadableRecordError

A `RequestError` carries what a channel needs to answer: `status`, `code`, `param`, `retry_after`. Its text is safe to
show; what is not safe to show stays in `__cause__` and reaches only the log. A `ForbiddenError` has a `group_message`
too: in a group a channel says that, and the message itself in the person's direct chat, if it can speak there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class FrontdeskError(Exception):
    """The root of the tree."""


class ChannelConfigurationError(FrontdeskError):
    """The host can't be built as configured; `findings` has one line for each thing that is wrong."""

    def __init__(self, findings: Sequence[str] | str) -> None:
        self.findings: tuple[str, ...] = (findings,) if isinstance(findings, str) else tuple(findings)
        super().__init__("\n".join(f"- {finding}" for finding in self.findings))


class CodecError(FrontdeskError):
    """A value has no JSON form, or a stored record can't be read back."""


class BrokenRecordError(CodecError):
    """The bytes of a stored record are none that any version has written."""


class StateDirectoryError(FrontdeskError):
    """The state directory can't be used."""

    def __init__(
        self, path: Path, reason: str, advice: str = "make it a directory that this process can write"
    ) -> None:
        self.path = path
        super().__init__(f"The state directory {path} can't be used: {reason}; {advice}, or choose another.")


class StateDirectoryInUseError(StateDirectoryError):
    """Another host uses the state directory; `pid`, `machine` and `since` tell which, if it has recorded them."""

    def __init__(
        self, path: Path, *, pid: int | None = None, machine: str | None = None, since: str | None = None
    ) -> None:
        self.pid, self.machine, self.since = pid, machine, since
        holder = "" if pid is None else f", process {pid} on {machine} since {since}"
        super().__init__(path, f"another host uses it{holder}", "stop that one")


class StoreError(FrontdeskError):
    """The state store refused a write; nothing of its transaction was kept."""


class StaleTurnError(StoreError):
    """The turn no longer holds its session, so its result was not written."""


class LostRunError(StoreError):
    """The background run is no longer this process's, so nothing of it was written."""


class LostEventError(StoreError):
    """The event is no longer this process's, so nothing of its answer was written."""


class LostDeliveryError(StoreError):
    """The delivery was changed by another meanwhile, so nothing of this was written."""


class DeliveryExistsError(StoreError):
    """There is a delivery with this idempotency key, so nothing was written again."""


class ApprovalExistsError(StoreError):
    """The owner has an approval with this id, so nothing was written."""


class LostAnswerError(StoreError):
    """The answer to an approval is no longer this run's, so nothing may be done with it here."""


class IdentityChangedError(StoreError):
    """The links or the key of an identity were changed meanwhile, so nothing was written."""


class LeadershipLostError(FrontdeskError):
    """The leadership could not be kept: another process may have it, so what was done under it was cancelled."""

    def __init__(self, channel: str, name: str) -> None:
        self.channel, self.name = channel, name
        super().__init__(f"channel {channel!r} has lost its leadership {name!r}; ask for it again to go on")


class SealError(FrontdeskError):
    """A value of a channel can't be opened: the key is not there, or the value is not what was sealed."""


class TaskError(FrontdeskError):
    """A task can't be registered or scheduled like this."""


class PushError(FrontdeskError):
    """The platform did not take what was sent; what is to be done next follows from the error alone."""

    code = "push_failed"
    permanent = False
    """Whether it would be refused again."""
    unknown = False
    """Whether it may have been taken all the same: it was sent, and no answer was seen."""

    def __init__(
        self,
        message: str | None = None,
        *,
        retry_after: float | None = None,
        permanent: bool | None = None,
        unknown: bool | None = None,
        everywhere: bool = False,
        code: str | None = None,
    ) -> None:
        """Set `everywhere` if a wait is for the whole channel and not for one destination."""
        super().__init__(message or type(self).__doc__ or "")
        self.retry_after = retry_after
        self.everywhere = everywhere
        if permanent is not None:
            self.permanent = permanent
        if unknown is not None:
            self.unknown = unknown
        if code is not None:
            self.code = code


class PushRefusedError(PushError):
    """The platform refuses this for good."""

    code = "push_refused"
    permanent = True


class PushNotModifiedError(PushRefusedError):
    """The message has this content already."""

    code = "not_modified"


class PushNotEditableError(PushRefusedError):
    """The message to be changed is gone, or too old to be changed."""

    code = "not_editable"


class PushLimitedError(PushError):
    """The platform wants us to wait."""

    code = "push_limited"


class PushUnknownError(PushError):
    """It was sent, and no answer was seen."""

    code = "push_unknown"
    unknown = True


class BegunRun(Protocol):
    """A run that has begun, and did not complete."""

    @property
    def run_id(self) -> str: ...


class RequestError(FrontdeskError):
    """A request that can't be served; the text is meant for the caller."""

    status = 500
    code = "error"

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message or type(self).__doc__ or "")
        if code is not None:
            self.code = code
        self.param = param
        self.retry_after = retry_after
        self.run: BegunRun | None = None
        """The run that failed. If there is one, the target was called, and a retry calls it once more."""

    @property
    def run_id(self) -> str | None:
        """Return the id of the run that failed, under which the log has the reason."""
        return None if self.run is None else self.run.run_id

    @property
    def message(self) -> str:
        """Return the text for the caller."""
        return str(self.args[0])


class InvalidRequestError(RequestError):
    """The request can't be understood."""

    status = 400
    code = "invalid_request"


class UnauthenticatedError(RequestError):
    """Valid credentials are needed."""

    status = 401
    code = "unauthenticated"


class ForbiddenError(RequestError):
    """This caller may not do that."""

    status = 403
    code = "forbidden"
    group_message = "You can't do that here."
    """The text for a place where others read it; the message itself is for the person alone."""

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
        group_message: str | None = None,
    ) -> None:
        super().__init__(message, code=code, param=param, retry_after=retry_after)
        if group_message is not None:
            self.group_message = group_message


class LinkRequiredError(ForbiddenError):
    """Link your account first."""

    code = "link_required"
    group_message = "Link your account first, in our direct chat."


class LinkRefusedError(ForbiddenError):
    """These accounts can't be linked."""

    code = "link_refused"


class NotFoundError(RequestError):
    """There is no such thing."""

    status = 404
    code = "not_found"


class MethodNotAllowedError(RequestError):
    """This method is not served here."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, *, allow: Sequence[str] = ()) -> None:
        super().__init__()
        self.allow = allow


class BodyTimeoutError(RequestError):
    """The body did not arrive in time."""

    status = 408
    code = "request_timeout"


class ConflictError(RequestError):
    """The request does not fit the present state."""

    status = 409
    code = "conflict"


class SessionRequiredError(ConflictError):
    """This channel needs a session, and the request names none."""

    code = "session_required"


class SessionBusyError(ConflictError):
    """Another turn of this session is still running."""

    code = "session_busy"


class RunExistsError(ConflictError):
    """A run with this id exists already."""

    code = "run_exists"


class UnlinkedError(ConflictError):
    """The account was unlinked while this was answered, so that what it asks for can't be approved."""

    code = "account_unlinked"


class BodyTooLargeError(RequestError):
    """The body is larger than this channel accepts."""

    status = 413
    code = "body_too_large"


class UnsupportedMediaError(RequestError):
    """The body must be JSON."""

    status = 415
    code = "unsupported_media_type"


class HookError(RequestError):
    """A hook of this host refused the request."""

    status = 422
    code = "hook_failed"


class SessionTooLargeError(RequestError):
    """The agent's state in this session is larger than this host stores; begin a new session."""

    status = 422
    code = "session_too_large"


class FileTooLargeError(RequestError):
    """The file is larger than this host keeps."""

    status = 413
    code = "file_too_large"

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(None if limit is None else f"The file has more than {limit} bytes, which are not kept here.")


class FilesFullError(RequestError):
    """There is no room for more files of this owner."""

    status = 413
    code = "files_full"

    def __init__(self, limit: int | None = None) -> None:
        more = f"The files would take more than {limit} bytes together; older ones are dropped in time."
        super().__init__(None if limit is None else more)


class KeyReusedError(RequestError):
    """This Idempotency-Key came with another request before; a new request needs a new key."""

    status = 422
    code = "idempotency_key_reused"


class TooManyRequestsError(RequestError):
    """Too many requests at once."""

    status = 429
    code = "too_many_requests"

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        retry_after: float | None = None,
        limit: int | None = None,
    ) -> None:
        """Set `limit` to the number of requests allowed in a time, if that was exceeded."""
        super().__init__(message, code=code, retry_after=retry_after)
        self.limit = limit


class InternalError(RequestError):
    """Something went wrong on our side."""

    status = 500
    code = "internal_error"


class TargetError(RequestError):
    """The agent failed while it answered."""

    status = 500
    code = "target_failed"


class NotStorableError(RequestError):
    """The agent left something behind that can't be stored as JSON."""

    status = 500
    code = "not_storable"


class ApprovalIdError(RequestError):
    """The agent asked for an approval under an id that can't be used."""

    status = 500
    code = "approval_id_invalid"


class UnsupportedError(RequestError):
    """This host is not set up for that."""

    status = 501
    code = "unsupported"


class UnavailableError(RequestError):
    """The service can't answer at the moment."""

    status = 503
    code = "unavailable"


class StoreUnavailableError(UnavailableError):
    """The storage of this service can't be reached at the moment; nothing that was confirmed is lost."""

    code = "store_unavailable"

    def __init__(self) -> None:
        super().__init__(retry_after=1.0)


class UnreadableRecordError(CodecError, UnavailableError):
    """This was written by a newer version of the service, which this part of it can't read yet."""

    code = "newer_record"

    def __init__(self, reason: str = "") -> None:
        """Take a `reason` for the log alone, as it may quote the record."""
        super().__init__(retry_after=5.0)
        self.reason = reason


class UnknownVersionError(UnreadableRecordError):
    """This was written by a newer version of the service, in a format that this part of it can't read yet."""

    def __init__(self, version: object = None) -> None:
        self.version = version
        super().__init__(f"the record has format version {version!r}, which this version of Frontdesk can't read")
