"""Identification and authorization of callers, and links between their accounts."""
