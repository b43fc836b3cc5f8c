"""Texts for people, by language."""
