"""Events from platforms: intake, ordered processing and cancellation."""
