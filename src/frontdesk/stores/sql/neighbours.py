"""Other hosts on the same database, as far as its server tells: each says in the names of its connections who it is."""

from collections import Counter
from collections.abc import Iterable

from frontdesk.ids import RandomIds

APPLICATION = "frontdesk"
"""With which the name of a host's connections begins; hosts of the schemas up to 10 are called by it alone."""
HOSTS = (
    "SELECT application_name FROM pg_stat_activity WHERE datname = current_database() "
    f"AND (application_name = '{APPLICATION}' OR starts_with(application_name, '{APPLICATION}/'))"
)


def application_name(version: int) -> str:
    """Return a name for the connections of a host that knows a version of the schema."""
    return f"{APPLICATION}/{version}/{RandomIds().new('host')}"


def describe(names: Iterable[str], floor: int) -> str:
    """Say which hosts the names of connections stand for, and what becomes of them; nothing if there are none.

    `floor` is the lowest schema that a host has to know from now on.
    """
    unnamed, hosts = 0, set[str]()
    for name in names:
        if name == APPLICATION:
            unnamed += 1
        else:
            hosts.add(name)
    versions = Counter(_version_of(name) for name in hosts)
    told = [f"{count} of schema version {version} ({_fate(version, floor)})" for version, count in versions.items()]
    if unnamed:
        told.append(f"{unnamed} connections of hosts older than schema version 11 ({_fate(10, floor)})")
    return ", ".join(sorted(told))


def _version_of(name: str) -> int:
    number = name.split("/")[1]
    return int(number) if number.isdigit() else 0


def _fate(version: int, floor: int) -> str:
    return "they go on" if version >= floor else "they will refuse to work on"
