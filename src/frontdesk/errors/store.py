"""Writes that the state store refused."""

from frontdesk.errors.base import FrontdeskError


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
