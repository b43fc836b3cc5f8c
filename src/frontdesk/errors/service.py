"""Errors of the service, and of requests that it can't serve at the moment."""

from frontdesk.errors.base import CodecError, FrontdeskError
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
    """A tool needs an approval, and no approver can be asked."""

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
    """The storage of this service can't be reached at the moment. Nothing that was confirmed is lost."""

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


class PushError(FrontdeskError):
    """The platform did not accept a call. The error alone decides what to do next."""

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
    """The platform rejects the call permanently."""

    code = "push_refused"
    permanent = True


class PushNotModifiedError(PushRefusedError):
    """The message has this content already."""

    code = "not_modified"


class PushNotEditableError(PushRefusedError):
    """The message to be changed is gone, or too old to be changed."""

    code = "not_editable"


class PushStoppedError(PushRefusedError):
    """The person has stopped the answer on the platform. Raised by the update of a live message, it cancels the run."""

    code = "stopped"


class PushLimitedError(PushError):
    """The platform requests a wait."""

    code = "push_limited"


class PushUnknownError(PushError):
    """The call was sent, and no response was received."""

    code = "push_unknown"
    unknown = True


class StoreError(FrontdeskError):
    """The state store rejected a write. Its transaction was rolled back."""


class StaleTurnError(StoreError):
    """The turn no longer holds its session, so its result was not written."""


class LostRunError(StoreError):
    """The background run is no longer this process's, so nothing of it was written."""


class LostEventError(StoreError):
    """The event is no longer this process's, so nothing of its answer was written."""


class EventBegunError(StoreError):
    """An earlier try of the event has begun a tool, so it is not tried again. Its run ends as interrupted."""


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
