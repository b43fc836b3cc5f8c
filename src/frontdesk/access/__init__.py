"""Identification and authorization of callers, and the links between their accounts."""
