"""The page about Foundry says what the code says."""

from frontdesk import FoundryHostedAgentHistoryProvider, PlatformAuth
from tests.docs.pages import ROOT
from tests.docs.test_reference import parameters, shown, signature

PAGE = ROOT / "docs/reference/foundry.md"


def test_every_parameter_of_the_provider_is_documented() -> None:
    found = signature(FoundryHostedAgentHistoryProvider)
    assert parameters(PAGE, FoundryHostedAgentHistoryProvider) == {name: shown(one) for name, one in found.items()}


def test_every_parameter_of_the_platform_is_documented() -> None:
    documented = parameters(ROOT / "docs/reference/http-callers.md", PlatformAuth)
    assert documented == {name: shown(one) for name, one in signature(PlatformAuth).items()}
