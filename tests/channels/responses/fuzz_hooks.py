"""What the document can't say, for the fuzzer."""
