"""Bounded dictionaries, of which the one is fair to the owners of what is in it."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
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

    __slots__ = ("_counts", "_is_counting", "_levels", "_owner_of", "_owners", "_queues", "_top")

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
        self._levels: dict[int, dict[Hashable, None]] = {}
        """The owners by their counts."""
        self._top = 0
        """The highest count."""

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
        if key in self._items:
            self._items[key] = value
            self._touched.add(key)
            return
        owner = self._owner_of(key, value)
        if len(self._items) >= self._limit and self._counts.get(owner) == self._top:
            # Most of what is put into a full shelf takes the place of an entry of the same owner, and no count changes.
            while not self._drop_oldest(owner):
                pass
            self._items[key] = value
            self._owners[key] = owner
            self._queues[owner].append(key)
            return
        self._items[key] = value
        self._enter(key, owner)
        self._make_room()

    def own(self, key: K) -> None:
        """Count an entry anew, whose owner was not known when it was put."""
        if self._is_counting and key in self._items:
            owner = self._owner_of(key, self._items[key])
            if owner != self._owners[key]:
                self._leave(key)
                self._enter(key, owner)

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
        self._make_room()

    def _make_room(self) -> None:
        while len(self._items) > self._limit:
            level = self._levels[self._top]
            owner = next(iter(level))
            if self._drop_oldest(owner):
                self._count(owner, -1)
            else:
                # Of owners with as many entries, another one is looked at next.
                del level[owner]
                level[owner] = None

    def _drop_oldest(self, owner: Hashable) -> bool:
        """Drop the oldest entry of an owner, unless it was touched, or is not theirs any more; its count stays."""
        queue = self._queues[owner]
        key = queue.popleft()
        if self._owners.get(key) != owner:
            return False
        if key in self._touched:
            self._touched.discard(key)
            queue.append(key)
            return False
        del self._owners[key]
        self._drop(key)
        return True

    def _enter(self, key: K, owner: Hashable) -> None:
        self._owners[key] = owner
        queue = self._queues.setdefault(owner, deque())
        queue.append(key)
        self._count(owner, 1)
        if len(queue) > 2 * self._counts[owner] + 16:
            # Keys that were removed are still in the queue.
            kept = dict.fromkeys(queued for queued in queue if self._owners.get(queued) == owner)
            self._queues[owner] = deque(kept)

    def _leave(self, key: K) -> None:
        self._count(self._owners.pop(key), -1)

    def _count(self, owner: Hashable, more: int) -> None:
        before = self._counts.get(owner, 0)
        after = before + more
        if before:
            level = self._levels[before]
            del level[owner]
            if not level:
                del self._levels[before]
        if after:
            self._counts[owner] = after
            self._levels.setdefault(after, {})[owner] = None
        else:
            del self._counts[owner]
            del self._queues[owner]
        if after > self._top or (before == self._top and before not in self._levels):
            self._top = after
