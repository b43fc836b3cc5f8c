"""Files that come in with messages and go out with answers, within the limits of a channel."""

from dataclasses import dataclass

_LARGEST = 20 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class MediaLimits:
    """How many files a channel takes and sends, and how large."""

    max_files: int = 10
    """How many files of one message are taken; more are refused."""
    max_bytes: int = _LARGEST
    """The bytes of a file that is taken, and of all of one message together."""
    max_sent_bytes: int = _LARGEST
    """The bytes of a file that is sent; of a larger one only the name is."""

    def findings(self) -> list[str]:
        """List what is wrong with the limits, a line each."""
        names = ("max_files", "max_bytes", "max_sent_bytes")
        return [f"media: {name} must be positive" for name in names if getattr(self, name) <= 0]
