"""Live messages and typing notices: messages that are edited while an answer is written."""
