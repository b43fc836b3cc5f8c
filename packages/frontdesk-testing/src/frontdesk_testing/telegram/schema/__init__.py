"""The Bot API as data: its methods, types and limits, and the check of a call against them."""
