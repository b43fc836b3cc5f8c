"""Bounded dictionaries. One of them shares its capacity fairly between owners."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(Generic[K, V]):
    """A bounded dictionary with second-chance eviction: entries not touched since insertion go first.

    The oldest entry is checked first. If it was touched, it moves to the end of the queue instead. This approximates
    LRU at a third of the cost per insertion of an ordered dictionary.
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
        """Give an existing key a second chance."""
        self._touched.add(key)

    def pop(self, key: K) -> V | None:
        self._touched.discard(key)
        value = self._items.pop(key, None)
        if len(self._queue) > 2 * self._limit:
            # Keys that were removed are still in the queue.
            self._queue = deque(dict.fromkeys(queued for queued in self._queue if queued in self._items))
        return value

    def items(self) -> Iterator[tuple[K, V]]:
        """Iterate over all entries. They may be dropped during iteration."""
        return iter(list(self._items.items()))

    def __contains__(self, key: K) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)


class _Share(Generic[K]):
    __slots__ = ("count", "keys", "owner")

    def __init__(self, owner: Hashable) -> None:
        self.owner = owner
        self.count = 0
        self.keys: deque[K] = deque()
        """The keys of its entries, the oldest first; some may have been removed meanwhile."""


class FairBoundedDict(BoundedDict[K, V]):
    """A bounded dictionary shared by owners. When it is full, the owner with the most entries loses one.

    Owners are counted only once it is full for the first time. Until then there is no additional cost.
    """

    __slots__ = ("_compute_share", "_get_owner", "_is_counting", "_levels", "_shares", "_top")

    def __init__(
        self,
        limit: int,
        get_owner: Callable[[K, V], Hashable],
        on_drop: Callable[[K, V], None] | None = None,
    ) -> None:
        super().__init__(limit, on_drop)
        self._get_owner = get_owner
        self._is_counting = False
        self._compute_share: dict[K, _Share[K]] = {}
        """The share to which each entry belongs, once owners are counted."""
        self._shares: dict[Hashable, _Share[K]] = {}
        self._levels: dict[int, dict[_Share[K], None]] = {}
        """The shares by their counts."""
        self._top = 0
        """The highest count."""

    def put(self, key: K, value: V) -> None:
        items = self._items
        if not self._is_counting:
            if key not in items:
                self._queue.append(key)
            else:
                self._touched.add(key)
            items[key] = value
            if len(items) > self._limit:
                self._count_all()
        elif key in items:
            items[key] = value
            self._touched.add(key)
        else:
            get_owner = self._get_owner
            owner = get_owner(key, value)
            share = self._shares.get(owner)
            if share is None or share.count != self._top or len(items) < self._limit:
                items[key] = value
                self._enter(key, owner)
                self._evict()
                return
            # Most of what is put into a full shelf takes the place of an entry of the same owner, and no count changes.
            # As `_drop_oldest` does, without its calls.
            keys, compute_share, touched = share.keys, self._compute_share, self._touched
            while True:
                oldest = keys.popleft()
                if compute_share.get(oldest) is not share:
                    continue
                if oldest not in touched:
                    break
                touched.discard(oldest)
                keys.append(oldest)
            del compute_share[oldest]
            dropped = items.pop(oldest)
            if self._on_drop is not None:
                self._on_drop(oldest, dropped)
            items[key] = value
            compute_share[key] = share
            keys.append(key)

    def own(self, key: K) -> None:
        """Count an entry again, whose owner was unknown at insertion."""
        if self._is_counting and key in self._items:
            owner = self._get_owner(key, self._items[key])
            if owner != self._compute_share[key].owner:
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
                self._enter(key, self._get_owner(key, self._items[key]))
        self._queue.clear()
        self._evict()

    def _evict(self) -> None:
        while len(self._items) > self._limit:
            level = self._levels[self._top]
            share = next(iter(level))
            if self._drop_oldest(share):
                self._count(share, -1)
            else:
                # Of owners with as many entries, another one is looked at next.
                del level[share]
                level[share] = None

    def _drop_oldest(self, share: _Share[K]) -> bool:
        """Drop the oldest entry of a share, unless it was touched or changed owner. Its count stays."""
        keys = share.keys
        key = keys.popleft()
        if self._compute_share.get(key) is not share:
            return False
        if key in self._touched:
            self._touched.discard(key)
            keys.append(key)
            return False
        del self._compute_share[key]
        self._drop(key)
        return True

    def _enter(self, key: K, owner: Hashable) -> None:
        share = self._shares.get(owner)
        if share is None:
            share = self._shares[owner] = _Share(owner)
        self._compute_share[key] = share
        share.keys.append(key)
        self._count(share, 1)
        if len(share.keys) > 2 * share.count + 16:
            # Keys that were removed are still among them.
            share.keys = deque(dict.fromkeys(kept for kept in share.keys if self._compute_share.get(kept) is share))

    def _leave(self, key: K) -> None:
        self._count(self._compute_share.pop(key), -1)

    def _count(self, share: _Share[K], more: int) -> None:
        before, after = share.count, share.count + more
        share.count = after
        if before:
            level = self._levels[before]
            del level[share]
            if not level:
                del self._levels[before]
        if after:
            self._levels.setdefault(after, {})[share] = None
        else:
            del self._shares[share.owner]
        if after > self._top or (before == self._top and before not in self._levels):
            self._top = after
