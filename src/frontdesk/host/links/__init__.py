"""Link commands in chats."""
