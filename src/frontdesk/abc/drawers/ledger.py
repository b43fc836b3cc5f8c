"""Rows of every owner, for operators."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from frontdesk.data.ledger import LedgerKind, LedgerRow


class Ledger(Protocol):
    """Rows of every owner; they are only read here."""

    async def rows(
        self,
        kind: LedgerKind,
        *,
        by: Mapping[str, str] | None = None,
        after: Sequence[Any] | None = None,
        limit: int = 200,
    ) -> Sequence[LedgerRow]:
        """List rows in the order of their kind; `after` is the place of the last one seen.

        `by` is one of the combinations of `INDEXED`. For a status, rows of others may be among them. A store reads no
        more than `limit` rows or so, however many there are.
        """
        ...
