"""Other hosts on the same database, known by the application names of their connections."""

from collections import Counter
from collections.abc import Iterable

from frontdesk.ids import RandomIds

APPLICATION = "frontdesk"
"""The prefix of the application name of a host; up to schema version 10 it is the whole name."""
HOSTS = (
    "SELECT application_name FROM pg_stat_activity WHERE datname = current_database() "
    f"AND (application_name = '{APPLICATION}' OR starts_with(application_name, '{APPLICATION}/'))"
)


def application_name(version: int) -> str:
    """Return a name for the connections of a host that knows a version of the schema."""
    return f"{APPLICATION}/{version}/{RandomIds().new('host')}"


def describe(names: Iterable[str], floor: int) -> str:
    """Describe the hosts behind the names of connections, and whether they can go on; return "" if there are none.

    `floor` is the lowest schema that a host has to know from now on.
    """
    unnamed, hosts = 0, set[str]()
    for name in names:
        if name == APPLICATION:
            unnamed += 1
        else:
            hosts.add(name)
    versions = Counter(_version_of(name) for name in hosts)
    parts = [f"{count} of schema version {version} ({_fate(version, floor)})" for version, count in versions.items()]
    if unnamed:
        parts.append(f"{unnamed} connections of hosts older than schema version 11 ({_fate(10, floor)})")
    return ", ".join(sorted(parts))


def _version_of(name: str) -> int:
    number = name.split("/")[1]
    return int(number) if number.isdigit() else 0


def _fate(version: int, floor: int) -> str:
    return "they go on" if version >= floor else "they will refuse to work on"
