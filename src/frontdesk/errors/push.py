"""Pushes that a platform did not take."""

from frontdesk.errors.base import FrontdeskError


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
