"""Linking in chats."""
