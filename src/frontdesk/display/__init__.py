"""Texts for approvers: escaped arguments and display names."""
