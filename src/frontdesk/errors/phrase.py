"""Sentences that are said in the language of whoever reads them."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Phrase(NamedTuple):
    """A sentence of the catalogue of texts, by its key, with its values; a value may be a phrase too."""

    key: str
    values: Mapping[str, Any] = {}
