"""Who is calling over HTTP, for the rooms of channels."""

from frontdesk.kit.auth import HttpVerifier as HttpVerifier
