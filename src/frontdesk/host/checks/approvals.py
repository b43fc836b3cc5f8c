"""Mistakes in the rules for approvals that can be found before the host runs."""

from collections.abc import Sequence
from typing import Any

from agent_framework import HistoryProvider

from frontdesk.abc.channel import Channel
from frontdesk.abc.push import AsksApprovers
from frontdesk.abc.target import ShowsToolSchemas, Target
from frontdesk.approvals.policy import ApprovalOptions
from frontdesk.delivery.push import can_push


def approval_findings(options: Any, channels: Sequence[Channel], target: Target, *, linked: bool) -> list[str]:
    """List what is wrong with the rules for approvals, a line each; `linked` tells whether the host has a linker."""
    if options is None:
        return []
    if not isinstance(options, ApprovalOptions):
        return [f"approvals: {options!r} is not ApprovalOptions"]
    asking = {channel.name for channel in channels if isinstance(channel, AsksApprovers) and can_push(channel)}
    known = {channel.name for channel in channels}
    tools = None
    if isinstance(target, ShowsToolSchemas) and not _brings_tools_along(target):
        tools = {name for name in options.tools if target.tool_schema(name) is not None}
    return options.findings(asking=asking, known=known, tools=tools, linked=linked)


def _brings_tools_along(target: Target) -> bool:
    """Tell whether a target may have tools that are seen only when it runs, such as those of a context provider."""
    providers: Any = getattr(target.native, "context_providers", None) or ()
    return bool(getattr(target.native, "mcp_tools", None)) or any(
        not isinstance(provider, HistoryProvider) for provider in providers
    )
