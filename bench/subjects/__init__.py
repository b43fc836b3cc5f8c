"""What is measured. One file for each subject, with an object named `subject` in it."""

from __future__ import annotations

from importlib import import_module

from bench.subjects.base import Subject


def find_subject(name: str) -> Subject:
    module = import_module(f"bench.subjects.{name.replace('-', '_')}")
    subject = module.subject
    assert isinstance(subject, Subject)
    return subject
