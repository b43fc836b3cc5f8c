"""What others need to test their own channels, stores and agents."""
