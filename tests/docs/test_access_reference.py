"""The page about who may come in names what there is, and nothing else."""

import inspect
import re

from frontdesk.access import allowlists, gate, policy
from frontdesk.access.allowlists import LOAD_SECONDS
from frontdesk.access.policy import AuthPolicy
from tests.docs.pages import ROOT, prose_of, tables

PAGE = ROOT / "docs/reference/access.md"


def first_column(title: str) -> list[str]:
    return [re.findall(r"`([^`]+)`", row[0])[0] for row in tables(PAGE)[title]]


def classes_of(module: object, ability: str) -> set[str]:
    found = inspect.getmembers(module, lambda one: inspect.isclass(one) and ability in vars(one))
    return {name for name, one in found if one.__module__ == getattr(module, "__name__", "") and name[0] != "_"}


def test_every_rule_is_named_with_its_arguments() -> None:
    for shown in first_column("AuthPolicy"):
        name, _, arguments = shown.rstrip(")").partition("(")
        known = inspect.signature(getattr(AuthPolicy, name)).parameters.values()
        needed = [one.name for one in known if one.default is one.empty]
        assert ([] if not arguments else arguments.split(", ")) == needed
    names = {name for name in vars(AuthPolicy) if not name.startswith("_")}
    assert {shown.partition("(")[0] for shown in first_column("AuthPolicy")} == names


def test_every_allowlist_is_named() -> None:
    assert set(first_column("Allowlists")) == classes_of(allowlists, "evaluate")


def test_every_policy_is_named() -> None:
    assert set(first_column("Link policies")) == classes_of(policy, "__call__")


def test_every_reason_is_named() -> None:
    assert set(first_column("Reason codes")) == {*gate.REASONS, gate.REFUSED.reason_code}


def test_the_times_are_those_of_the_code() -> None:
    kept = inspect.signature(allowlists.NativeIdAllowlist).parameters["cache_seconds"].default
    assert f"`cache_seconds` ({kept:.0f})" in prose_of(PAGE)
    assert f"at most {LOAD_SECONDS:.0f} s" in prose_of(PAGE)
