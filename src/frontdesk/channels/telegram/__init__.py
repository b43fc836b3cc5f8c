"""Telegram: a bot that answers people in private chats, groups and topics."""

from frontdesk.channels.telegram.channel import TelegramChannel

__all__ = ["TelegramChannel"]
