"""Four people with a desk, and a simple model of who is linked with whom."""

from collections.abc import Callable, Iterable, Sequence

from frontdesk.access.identify import IdentityKeys
from frontdesk.access.links import Links
from frontdesk.clock import Clock
from frontdesk.ids import RandomIds
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import Delivery
from frontdesk.models.identity import ChannelIdentity, IdentityRecord
from frontdesk.models.link import LinkProof
from frontdesk_testing import FakeClock

NAMES = "abcd"


def who(name: str) -> ChannelIdentity:
    """Somebody, each on a channel of their own."""
    return ChannelIdentity(channel=f"chat-{name}", native_id=name, attributes={"name": name.upper()})


def home(name: str) -> str:
    """The key that somebody has alone."""
    return f"key of {name}"


class Said:
    """Remembers what was told to whom."""

    def __init__(self) -> None:
        self.words: list[tuple[str, str]] = []

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        self.words.append((identity.native_id, text))
        return True

    def notes(self, people: Sequence[ChannelIdentity], text: str, *, owner: str) -> Sequence[Delivery]:
        return [
            Delivery(
                delivery_id=RandomIds().new("dlv"),
                run_id="",
                owner=owner,
                channel=one.channel,
                identity=one,
                part=0,
                payload=text,
                created_at=1.0,
                due_at=1.0,
            )
            for one in people
        ]

    async def send(self, notes: Sequence[Delivery]) -> None:
        self.words += [(one.identity.native_id, one.payload) for one in notes]

    def to(self, name: str) -> list[str]:
        """What somebody was told."""
        return [text for told, text in self.words if told == name]


def desk(store: HostStateStore, *, said: Said | None = None, clock: Clock | None = None, **parts: object) -> Links:
    """A desk over a store."""
    ids, clock = RandomIds(), clock or FakeClock()
    return Links(store, IdentityKeys(store, ids, clock), ids, clock, messenger=said, **parts)  # type: ignore[arg-type]


async def introduce(store: HostStateStore, names: Iterable[str] = NAMES) -> None:
    """Gives everybody a key."""
    for name in names:
        await store.identities.remember(IdentityRecord(identity=who(name), isolation_key=home(name), created_at=1.0))


async def join(links: Links, name: str, survivor: str) -> None:
    """One is linked to another, whose key goes on."""
    await links.join(LinkProof(linker="test", identity=who(name), survivor=who(survivor)))


async def keys(store: HostStateStore) -> dict[str, str]:
    """Who has which key, by the names of those whose own it is."""
    found = {name: await store.identities.find(who(name)) for name in NAMES}
    return {name: record.isolation_key[-1] for name, record in found.items() if record is not None}


class Model:
    """Links are lines between people. Whoever is connected shares the key of one of them."""

    def __init__(self) -> None:
        self.lines: set[frozenset[str]] = set()
        self.key = {name: name for name in NAMES}

    def link(self, name: str, survivor: str) -> None:
        """Draws a line, unless a way leads there already."""
        if survivor in self.list_connected(name):
            return
        for one in self.list_connected(name):
            self.key[one] = self.key[survivor]
        self.lines.add(frozenset((name, survivor)))

    def unlink(self, name: str) -> None:
        """Takes away somebody's lines; whom no line leads to the owner of their key has their own again."""
        self.lines = {line for line in self.lines if name not in line}
        for one in NAMES:
            if self.key[one] not in self.list_connected(one):
                self.alone(one)
        if self.key[name] != name:
            self.alone(name)

    def alone(self, name: str) -> None:
        """Nobody but oneself."""
        self.lines = {line for line in self.lines if name not in line}
        self.key[name] = name

    def list_connected(self, name: str) -> set[str]:
        """Everybody to whom a way leads."""
        found, new = {name}, {name}
        while new:
            new = {one for line in self.lines if line & new for one in line} - found
            found |= new
        return found


Step = tuple[str, str, str]
"""`link`, who, and to whom; or `unlink`, who, and nobody."""


def play(model: Model, step: Step) -> None:
    """Does a step in the model."""
    what, name, other = step
    act: Callable[..., None] = model.link if what == "link" else model.unlink
    act(*((name, other) if what == "link" else (name,)))


async def play_for_real(links: Links, step: Step) -> None:
    """Does a step at the desk."""
    what, name, other = step
    if what == "link":
        await join(links, name, other)
    else:
        await links.part(who(name))
