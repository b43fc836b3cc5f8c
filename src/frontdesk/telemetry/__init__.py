"""Telemetry spans, and redaction of logs."""
