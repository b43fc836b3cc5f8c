"""How many examples a property is asked with."""

from typing import Any

from hypothesis import HealthCheck, settings

USUAL = 50
THOROUGH = 2000
# How long an example takes says nothing on a machine that does other things too; what a fixture gives, examples share.
_ALWAYS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}


def load_profile() -> None:
    """Ask with the usual number of examples, unless `--hypothesis-profile=thorough` is given."""
    settings.register_profile("frontdesk", max_examples=USUAL, **_ALWAYS)
    settings.register_profile("thorough", max_examples=THOROUGH, **_ALWAYS)
    settings.load_profile("frontdesk")


def examples(count: int, **more: Any) -> settings:
    """Ask with so many in a hundred of the usual examples, because each costs a server or more."""
    return settings(max_examples=max(1, count * settings().max_examples // 100), **more)
