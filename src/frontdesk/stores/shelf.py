"""Bounded dictionaries, of which the one is fair to the owners of what is in it."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Shelf(Generic[K, V]):
    """A bounded dictionary with second-chance eviction: entries that were put and never touched since go first.

    The oldest entry is looked at first, and one that was touched moves to the end of the queue instead. That comes
    close to LRU, for a third of what an ordered dictionary costs at every put.
    """

    __slots__ = ("_items", "_limit", "_on_drop", "_queue", "_touched", "get")

    def __init__(self, limit: int, on_drop: Callable[[K, V], None] | None = None) -> None:
        self._items: dict[K, V] = {}
        self._queue: deque[K] = deque()
        self._touched: set[K] = set()
        self._limit = limit
        self._on_drop = on_drop
        self.get: Callable[[K], V | None] = self._items.get

    def put(self, key: K, value: V) -> None:
        if key in self._items:
            self._touched.add(key)
        else:
            self._queue.append(key)
        self._items[key] = value
        while len(self._items) > self._limit:
            self._drop_one()

    def _drop_one(self) -> None:
        key = self._queue.popleft()
        if key in self._touched:
            self._touched.discard(key)
            self._queue.append(key)
        elif key in self._items:
            self._drop(key)

    def _drop(self, key: K) -> None:
        value = self._items.pop(key)
        if self._on_drop is not None:
            self._on_drop(key, value)

    def touch(self, key: K) -> None:
        """Give a key that is there a second chance."""
        self._touched.add(key)

    def pop(self, key: K) -> V | None:
        self._touched.discard(key)
        value = self._items.pop(key, None)
        if len(self._queue) > 2 * self._limit:
            # Keys that were removed are still in the queue.
            self._queue = deque(dict.fromkeys(queued for queued in self._queue if queued in self._items))
        return value

    def items(self) -> Iterator[tuple[K, V]]:
        """Return all entries; they may be dropped while the caller iterates."""
        return iter(list(self._items.items()))

    def __contains__(self, key: K) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)


class SharedShelf(Shelf[K, V]):
    """A shelf that is shared by owners: when it is full, the owner with the most entries loses one of theirs.

    Owners are counted only once it is full for the first time: until then it costs no more than any other.
    """

    __slots__ = ("_counts", "_is_counting", "_numbers", "_owner_of", "_owners", "_queues", "_ranks")

    def __init__(
        self,
        limit: int,
        owner_of: Callable[[K, V], Hashable],
        on_drop: Callable[[K, V], None] | None = None,
    ) -> None:
        super().__init__(limit, on_drop)
        self._owner_of = owner_of
        self._is_counting = False
        self._owners: dict[K, Hashable] = {}
        """The owner of each entry, once owners are counted."""
        self._queues: dict[Hashable, deque[K]] = {}
        self._counts: dict[Hashable, int] = {}
        self._ranks: list[tuple[int, int, Hashable]] = []
        """A heap of owners by their counts; an owner whose count has changed since has another entry."""
        self._numbers = count()

    def put(self, key: K, value: V) -> None:
        if not self._is_counting:
            if key not in self._items:
                self._queue.append(key)
            else:
                self._touched.add(key)
            self._items[key] = value
            if len(self._items) <= self._limit:
                return
            return self._count_all()
        is_new = key not in self._items
        self._items[key] = value
        if is_new:
            self._enter(key, self._owner_of(key, value))
        else:
            self._touched.add(key)
        while len(self._items) > self._limit:
            self._drop_one()

    def own(self, key: K) -> None:
        """Count an entry anew, whose owner was not known when it was put."""
        if self._is_counting and key in self._items:
            self._leave(key)
            self._enter(key, self._owner_of(key, self._items[key]))

    def pop(self, key: K) -> V | None:
        if self._is_counting and key in self._items:
            self._leave(key)
        return super().pop(key)

    def _count_all(self) -> None:
        self._is_counting = True
        for key in dict.fromkeys(self._queue):
            if key in self._items:
                self._enter(key, self._owner_of(key, self._items[key]))
        self._queue.clear()
        while len(self._items) > self._limit:
            self._drop_one()

    def _enter(self, key: K, owner: Hashable) -> None:
        self._owners[key] = owner
        queue = self._queues.setdefault(owner, deque())
        queue.append(key)
        self._rank(owner, self._counts.get(owner, 0) + 1)
        if len(queue) > 2 * self._counts[owner] + 16:
            # Keys that were removed are still in the queue.
            kept = dict.fromkeys(queued for queued in queue if self._owners.get(queued) == owner)
            self._queues[owner] = deque(kept)

    def _leave(self, key: K) -> None:
        owner = self._owners.pop(key)
        self._rank(owner, self._counts[owner] - 1)

    def _rank(self, owner: Hashable, entries: int) -> None:
        if not entries:
            del self._counts[owner]
            del self._queues[owner]
            return
        self._counts[owner] = entries
        heappush(self._ranks, (-entries, next(self._numbers), owner))
        if len(self._ranks) > 4 * self._limit + 64:
            self._ranks = [(-counted, next(self._numbers), one) for one, counted in self._counts.items()]
            heapify(self._ranks)

    def _drop_one(self) -> None:
        entries, _, owner = self._ranks[0]
        queue = self._queues.get(owner)
        if queue is None or self._counts.get(owner) != -entries:
            heappop(self._ranks)
            return
        key = queue.popleft()
        if self._owners.get(key) != owner or key not in self._items:
            return
        if key in self._touched:
            self._touched.discard(key)
            queue.append(key)
            # Of owners with as many entries, another one is looked at next.
            heappop(self._ranks)
            self._rank(owner, -entries)
            return
        self._leave(key)
        self._drop(key)
