"""Requests that fail on the side of the service, or that it can't serve at the moment."""

from frontdesk.errors.base import CodecError
from frontdesk.errors.requests import RequestError


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


class NobodyToAskError(RequestError):
    """A tool needs an approval, and there is nobody who can be asked for it."""

    status = 500
    code = "nobody_to_ask"


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
