"""The URL paths of the OpenAI APIs."""

from typing import Final

API_PATHS: Final = ("/v1", "/openai/v1")
"""The base paths of clients: that of the `openai` package, and that of `azure-ai-projects`."""
