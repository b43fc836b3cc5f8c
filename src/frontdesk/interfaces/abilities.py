"""Optional abilities of components.

A component declares an ability by deriving from its base class. A method alone gives no ability. When a host is built,
it reports ability methods in classes without the base class, and misspelt method names.
"""

from collections.abc import Iterator
from typing import TypeVar

A = TypeVar("A", bound=type)


class Abilities:
    """The abilities of one kind of component. Used as a decorator to declare each of them."""

    def __init__(self) -> None:
        self._declared: list[type] = []

    def __call__(self, ability: A) -> A:
        """Declare a class as an ability."""
        self._declared.append(ability)
        return ability

    def __iter__(self) -> Iterator[type]:
        return iter(self._declared)


channel_ability = Abilities()
linker_ability = Abilities()
store_ability = Abilities()
auth_ability = Abilities()
