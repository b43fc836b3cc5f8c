"""Texts with entities: parsing, validation and detection."""
