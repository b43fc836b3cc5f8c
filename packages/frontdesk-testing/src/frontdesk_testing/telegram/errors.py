"""The errors of the Bot API, with the texts of the server."""

from typing import Any


class ApiError(Exception):
    """A call that is answered with `"ok": false`."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def as_json(self) -> dict[str, Any]:
        """Return the body of the answer."""
        body: dict[str, Any] = {"ok": False, "error_code": self.code, "description": self.description}
        return {**body, "parameters": self.parameters} if self.parameters else body


def bad_request(reason: str) -> ApiError:
    """Return the error of an invalid call."""
    return ApiError(400, f"Bad Request: {reason}")


def forbidden(reason: str) -> ApiError:
    """Return the error of a forbidden call."""
    return ApiError(403, f"Forbidden: {reason}")


def conflict(reason: str) -> ApiError:
    """Return the error of a poll that another poll or a webhook excludes."""
    return ApiError(409, f"Conflict: {reason}")


def too_many_requests(seconds: int) -> ApiError:
    """Return the error of flood control."""
    return ApiError(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)
