"""State that the host stores for channels: leaderships, values, receipts and conversation names."""
