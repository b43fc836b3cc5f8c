"""Shows answers while they are written: a message that is changed as the text grows, and typing."""
