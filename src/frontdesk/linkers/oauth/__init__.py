"""Links accounts by OAuth sign-in: Microsoft Entra, Google, GitHub, or any OpenID Connect issuer."""

from frontdesk.linkers.oauth.linker import OAuthIdentityLinker
from frontdesk.linkers.oauth.presets import Entra, GitHub, Google, Oidc
from frontdesk.linkers.oauth.provider import Account, Endpoints, Provider, subject_of

__all__ = ["Account", "Endpoints", "Entra", "GitHub", "Google", "OAuthIdentityLinker", "Oidc", "Provider", "subject_of"]
