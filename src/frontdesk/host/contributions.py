"""Collects what things that are no channels add to the host."""

from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk.abc.channel import Channel
from frontdesk.abc.host import ContributesToHost, HostContribution
from frontdesk.abc.linker import IdentityLinker, SupportsLinkRoutes, SupportsLinkShutdown, SupportsLinkStartup
from frontdesk.errors import ChannelConfigurationError
from frontdesk.host.checks.channels import HOST_PATHS

_LINKER = "linker"


def contributions_of(
    linker: IdentityLinker | None, given: Sequence[HostContribution], channels: Mapping[str, Channel]
) -> tuple[HostContribution, ...]:
    """Return the contribution of the linker and those that were given; raise if something is wrong with them."""
    every = (*([] if linker is None else [_of_linker(linker)]), *given)
    findings = host_contribution_findings(every, channels)
    if findings:
        raise ChannelConfigurationError(findings)
    return every


def host_contribution_findings(given: Sequence[Any], channels: Mapping[str, Channel]) -> list[str]:
    """List what is wrong with contributions, a line each."""
    wrong = [f"{each!r} is not a HostContribution" for each in given if not isinstance(each, HostContribution)]
    taken: dict[str, str] = dict.fromkeys(HOST_PATHS, "the host")
    taken |= {channel.path: f"the channel {name!r}" for name, channel in channels.items()}
    for each in given:
        if not isinstance(each, HostContribution):
            continue
        wrong += [f"{each.name}: {finding}" for finding in each.findings]
        if not each.routes:
            continue
        if not each.path.startswith("/") or each.path.endswith("/"):
            wrong.append(f"{each.name}: its path {each.path!r} must begin with a slash and not end with one")
        elif each.path in taken:
            wrong.append(f"{each.name}: its path {each.path!r} is also that of {taken[each.path]}")
        taken.setdefault(each.path, each.name)
    return wrong


def _of_linker(linker: IdentityLinker) -> HostContribution:
    """Return what a linker adds, by `ContributesToHost` or by the single abilities of linkers."""
    if isinstance(linker, ContributesToHost):
        return linker.contribute_to_host()
    serves = isinstance(linker, SupportsLinkRoutes)
    return HostContribution(
        name=_LINKER,
        path=linker.path if serves else "",
        routes=tuple(linker.routes()) if serves else (),
        on_startup=(linker.on_startup,) if isinstance(linker, SupportsLinkStartup) else (),
        on_shutdown=(linker.on_shutdown,) if isinstance(linker, SupportsLinkShutdown) else (),
    )
