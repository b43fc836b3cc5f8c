"""Where a command finds state, and that it drops nothing there."""

from frontdesk.cli import state_paths


def test_what_a_command_opens_it_keeps_for_good_whatever_kinds_there_are() -> None:
    kept = state_paths._FOR_GOOD
    assert {name: getattr(kept, name) for name in kept.__struct_fields__} == dict.fromkeys(kept.__struct_fields__)
