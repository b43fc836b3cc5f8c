"""The MCP channel: the target as tools of the Model Context Protocol."""

from frontdesk.channels.mcp.channel import MCPChannel
from frontdesk.channels.mcp.config import MCPTool

__all__ = ["MCPChannel", "MCPTool"]
