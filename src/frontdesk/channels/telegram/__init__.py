"""Telegram: a bot that answers people in private chats, groups and topics."""
