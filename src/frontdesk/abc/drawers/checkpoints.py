"""Checkpoints of workflows."""

from typing import Protocol


class SavedCheckpoints(Protocol):
    """Checkpoints of paused workflows, in the framework's own form; named by the session's own record."""

    async def get(self, session_id: str, checkpoint_id: str) -> bytes | None: ...


class CheckpointWrites(Protocol):
    """Write checkpoints."""

    def save_checkpoint(self, session_id: str, checkpoint_id: str, data: bytes) -> None: ...

    def delete_checkpoint(self, session_id: str, checkpoint_id: str) -> None: ...
