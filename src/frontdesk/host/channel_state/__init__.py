"""The state that the host keeps for channels: leaderships, values, receipts and names of conversations."""
