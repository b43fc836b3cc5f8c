"""The errors that Frontdesk raises.

    FrontdeskError
    ├── ChannelConfigurationError      found when the host is built; all findings at once
    ├── CodecError                     a value has no JSON form, or a record can't be read
    │   ├── BrokenRecordError          no version can read it; the record is set aside
    │   └── UnreadableRecordError      a newer version may read it; the record is kept, and it is a RequestError too
    │       └── UnknownVersionError
    ├── HistoryStorageError            a response store rejected or lost a request
    │   ├── HistoryRefusedError        it has no such response for this person
    │   └── ResponseTakenError         it has one with this id already
    ├── StateDirectoryError            the host can't keep its state where it was told to
    │   └── StateDirectoryInUseError   another host does already
    ├── AdminSocketError               the socket for operators can't be opened
    ├── OperatorError                  a running host does not answer an operator's program, or has refused it
    ├── StoreError                     the state store rejected a write
    │   ├── StaleTurnError             the turn was fenced off: a newer one holds the session
    │   ├── LostRunError               a background run was fenced off: another process works on it, or none may
    │   ├── LostEventError             an event was fenced off: another process answers it, or has
    │   ├── EventBegunError            an earlier try of an event has begun a tool, so it is not tried again
    │   ├── LostDeliveryError          a delivery was changed by another meanwhile
    │   ├── ApprovalExistsError        the owner has an approval with this id
    │   ├── LostAnswerError            another run has taken over the answer to an approval, or it was cancelled
    │   ├── IdentityChangedError       the links or the key of an identity were changed by another meanwhile
    │   └── DeliveryExistsError        a delivery with this idempotency key was made before
    ├── LeadershipLostError            another process may hold the leadership already, so its body was cancelled
    ├── SealError                      what a channel has kept can't be opened with the keys of this host
    ├── TaskError                      a task can't be registered or scheduled so
    ├── PushError                      a platform did not accept a call, and may later
    │   ├── PushRefusedError           it never will
    │   │   ├── PushNotModifiedError   the message has this content already
    │   │   ├── PushNotEditableError   the message to be changed is gone, or too old
    │   │   └── PushStoppedError       the person has stopped the answer on the platform
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
        ├── FileTooLargeError      413
        ├── HistoryTooLargeError   413
        ├── FilesFullError         413
        │   └── VisitorFilesFullError
        ├── UnsupportedMediaError  415
        ├── HookError              422
        ├── SessionTooLargeError   422
        ├── KeyReusedError         422
        ├── TooManyRequestsError   429
        ├── InternalError          500
        ├── TargetError            500
        ├── NotStorableError       500
        ├── ApprovalIdError        500
        ├── NobodyToAskError       500
        ├── UnsupportedError       501
        └── UnavailableError       503
            ├── StoreUnavailableError
            └── UnreadableRecordError

A `RequestError` carries what a channel needs to answer: `status`, `code`, `param`, `retry_after`. Its text is safe to
show; what is not safe to show stays in `__cause__` and reaches only the log. A `ForbiddenError` has a `group_message`
too: in a group a channel says that, and the message itself in the person's direct chat, if it can speak there.
"""

from frontdesk.errors.base import (
    AdminSocketError,
    BrokenRecordError,
    ChannelConfigurationError,
    CodecError,
    FrontdeskError,
    HistoryRefusedError,
    HistoryStorageError,
    LeadershipLostError,
    OperatorError,
    Phrase,
    ResponseTakenError,
    SealError,
    StateDirectoryError,
    StateDirectoryInUseError,
    TaskError,
)
from frontdesk.errors.requests import (
    BegunRun,
    BodyTimeoutError,
    BodyTooLargeError,
    ConflictError,
    FilesFullError,
    FileTooLargeError,
    ForbiddenError,
    HistoryTooLargeError,
    HookError,
    InvalidRequestError,
    KeyReusedError,
    LinkRefusedError,
    LinkRequiredError,
    MethodNotAllowedError,
    NotFoundError,
    RequestError,
    RunExistsError,
    SessionBusyError,
    SessionRequiredError,
    SessionTooLargeError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnlinkedError,
    UnsupportedMediaError,
    VisitorFilesFullError,
)
from frontdesk.errors.service import (
    ApprovalExistsError,
    ApprovalIdError,
    DeliveryExistsError,
    EventBegunError,
    IdentityChangedError,
    InternalError,
    LostAnswerError,
    LostDeliveryError,
    LostEventError,
    LostRunError,
    NobodyToAskError,
    NotStorableError,
    PushError,
    PushLimitedError,
    PushNotEditableError,
    PushNotModifiedError,
    PushRefusedError,
    PushStoppedError,
    PushUnknownError,
    StaleTurnError,
    StoreError,
    StoreUnavailableError,
    TargetError,
    UnavailableError,
    UnknownVersionError,
    UnreadableRecordError,
    UnsupportedError,
)

__all__ = [
    "AdminSocketError",
    "ApprovalExistsError",
    "ApprovalIdError",
    "BegunRun",
    "BodyTimeoutError",
    "BodyTooLargeError",
    "BrokenRecordError",
    "ChannelConfigurationError",
    "CodecError",
    "ConflictError",
    "DeliveryExistsError",
    "EventBegunError",
    "FileTooLargeError",
    "FilesFullError",
    "ForbiddenError",
    "FrontdeskError",
    "HistoryRefusedError",
    "HistoryStorageError",
    "HistoryTooLargeError",
    "HookError",
    "IdentityChangedError",
    "InternalError",
    "InvalidRequestError",
    "KeyReusedError",
    "LeadershipLostError",
    "LinkRefusedError",
    "LinkRequiredError",
    "LostAnswerError",
    "LostDeliveryError",
    "LostEventError",
    "LostRunError",
    "MethodNotAllowedError",
    "NobodyToAskError",
    "NotFoundError",
    "NotStorableError",
    "OperatorError",
    "Phrase",
    "PushError",
    "PushLimitedError",
    "PushNotEditableError",
    "PushNotModifiedError",
    "PushRefusedError",
    "PushStoppedError",
    "PushUnknownError",
    "RequestError",
    "ResponseTakenError",
    "RunExistsError",
    "SealError",
    "SessionBusyError",
    "SessionRequiredError",
    "SessionTooLargeError",
    "StaleTurnError",
    "StateDirectoryError",
    "StateDirectoryInUseError",
    "StoreError",
    "StoreUnavailableError",
    "TargetError",
    "TaskError",
    "TooManyRequestsError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnknownVersionError",
    "UnlinkedError",
    "UnreadableRecordError",
    "UnsupportedError",
    "UnsupportedMediaError",
    "VisitorFilesFullError",
]
