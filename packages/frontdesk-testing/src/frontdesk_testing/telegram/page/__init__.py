"""A page for chats with a bot, without an account."""
