"""Links accounts by OAuth sign-in: Microsoft Entra, Google, GitHub, or any OpenID Connect issuer."""

import warnings
from typing import Any

from frontdesk.linkers.oauth.linker import OAuthIdentityLinker
from frontdesk.linkers.oauth.presets import Entra, GitHub, Google, Oidc
from frontdesk.linkers.oauth.provider import Account, Endpoints, Provider, get_subject

__all__ = [
    "Account",
    "Endpoints",
    "Entra",
    "GitHub",
    "Google",
    "OAuthIdentityLinker",
    "Oidc",
    "Provider",
    "get_subject",
]


def __getattr__(name: str) -> Any:
    if name == "subject_of":
        warnings.warn("subject_of is deprecated. Use get_subject.", DeprecationWarning, stacklevel=2)
        return get_subject
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
