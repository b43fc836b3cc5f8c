"""The base class of errors that callers receive, and errors of invalid requests."""

from collections.abc import Sequence
from typing import Any, Protocol, Self

from frontdesk.errors.base import FrontdeskError, Phrase
from frontdesk.errors.sizes import format_size


class BegunRun(Protocol):
    """A run that has begun, and did not complete."""

    @property
    def run_id(self) -> str: ...


class RequestError(FrontdeskError):
    """A request that can't be served. The text is meant for the caller."""

    status = 500
    code = "error"
    phrase: Phrase | None = None
    """The sentence for a chat, in the language of the person; needed only if its message has values in it."""

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

    def set_phrase(self, key: str, **values: Any) -> Self:
        """Set the phrase for chats, and return the error."""
        self.phrase = Phrase(key, values)
        return self

    @property
    def run_id(self) -> str | None:
        """Return the id of the run that failed, under which the log has the reason."""
        return None if self.run is None else self.run.run_id

    @property
    def message(self) -> str:
        """Return the text for the caller."""
        return str(self.args[0])


class InvalidRequestError(RequestError):
    """The request is invalid."""

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
    stored_run_id: str | None = None
    """The id of the run that the request becomes when the link is made. None if the request was not stored."""


class LinkRefusedError(ForbiddenError):
    """These accounts can't be linked."""

    code = "link_refused"


class NotFoundError(RequestError):
    """Not found."""

    status = 404
    code = "not_found"


NO_RUN = "Run not found: its id is wrong, it has expired, or it belongs to another caller."


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
    """The request conflicts with the current state."""

    status = 409
    code = "conflict"


class SessionRequiredError(ConflictError):
    """This channel requires a session. Set it in the request."""

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
    """The agent's state in this session is larger than this host stores. Begin a new session."""

    status = 422
    code = "session_too_large"


class HistoryTooLargeError(RequestError):
    """The history of this conversation takes more memory than this host gives it. Begin a new conversation."""

    status = 413
    code = "history_too_large"

    def __init__(self, size: int | None = None, limit: int | None = None) -> None:
        if size is None or limit is None:
            super().__init__()
            return
        sizes = {"size": format_size(size), "limit": format_size(limit)}
        super().__init__(
            f"The history of this conversation takes {sizes['size']} of memory to answer, and {sizes['limit']} is the "
            "most that this host gives one; begin a new conversation, or leave out what is wide or large."
        )
        self.set_phrase("error.history_too_large_limit", **sizes)


class FileTooLargeError(RequestError):
    """The file is larger than this host stores."""

    status = 413
    code = "file_too_large"

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(
            None if limit is None else f"The file is larger than {format_size(limit)}, which is the maximum here."
        )
        if limit is not None:
            self.set_phrase("error.file_too_large_limit", limit=format_size(limit))


class FilesFullError(RequestError):
    """The file storage of this owner is full."""

    status = 413
    code = "files_full"

    def __init__(self, limit: int | None = None) -> None:
        if limit is None:
            super().__init__()
            return
        size = format_size(limit)
        super().__init__(f"The files would take more than {size} together; older ones expire.")
        self.set_phrase("error.files_full_limit", limit=size)


class VisitorFilesFullError(FilesFullError):
    """The storage for files of visitors without an account is full. Send the message without files."""

    code = "visitor_files_full"

    def __init__(self, limit: int | None = None) -> None:
        if limit is None:
            RequestError.__init__(self)
            return
        size = format_size(limit)
        RequestError.__init__(
            self,
            f"The files of visitors without an account would take more than {size} together. Send the message without "
            "files, or link an account.",
        )
        self.set_phrase("error.visitor_files_full_limit", limit=size)


class KeyReusedError(RequestError):
    """This Idempotency-Key came with another request before. A new request needs a new key."""

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
