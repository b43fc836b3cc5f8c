"""The Telegram channel: a bot for private chats, groups and topics."""

from frontdesk.channels.telegram.channel import TelegramChannel

__all__ = ["TelegramChannel"]
