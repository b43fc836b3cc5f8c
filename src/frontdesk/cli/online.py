"""Asks platforms whether the settings of a host work there, and names the packages of foreign channels."""

import asyncio
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, version

from frontdesk.abc.channel import Channel
from frontdesk.abc.readiness import ChecksOnline
from frontdesk.errors import FrontdeskError
from frontdesk.host import AgentFrameworkHost

LONGEST = 10.0
"""The seconds that one platform may take."""
_OWN = "frontdesk"


def foreign_channels(host: AgentFrameworkHost) -> list[str]:
    """Return a line for each channel that is not of this package: its class, and the package and version of that."""
    return [
        f"  {channel.name}  {type(channel).__qualname__} of {_package(type(channel).__module__)}"
        for channel in host.channels
        if type(channel).__module__.partition(".")[0] != _OWN
    ]


def _package(module: str) -> str:
    for name in packages_distributions().get(module.partition(".")[0], ()):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return f"{module}, which is of no installed package"


async def check_online(host: AgentFrameworkHost, seconds: float = LONGEST) -> tuple[list[str], list[str]]:
    """Return a line for each channel that was asked, and what is wrong, a line each; one waits for no other."""
    asked = [channel for channel in host.channels if isinstance(channel, ChecksOnline)]
    answers = await asyncio.gather(*(_ask(channel, seconds) for channel in asked))
    lines, wrong = list[str](), list[str]()
    for channel, findings in zip(asked, answers, strict=True):
        lines.append(f"  {channel.name}  {'wrong' if findings else 'ok'}")
        wrong += [f"channel {channel.name!r}: {finding}" for finding in findings]
    silent = [channel.name for channel in host.channels if not isinstance(channel, ChecksOnline)]
    return lines + [f"  {name}  has nothing to ask" for name in silent], wrong


async def _ask(channel: Channel, seconds: float) -> Sequence[str]:
    if not isinstance(channel, ChecksOnline):
        return ()
    try:
        async with asyncio.timeout(seconds):
            return list(await channel.check_online())
    except TimeoutError:
        return [f"its platform has not answered in {seconds:g} seconds"]
    except FrontdeskError as error:
        return [str(error)]
    except Exception as error:  # A channel of somebody else's may raise anything; the others are asked all the same.
        return [f"its check has failed: {type(error).__name__}: {error}"]
