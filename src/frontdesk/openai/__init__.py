"""Items of the OpenAI APIs."""
