"""Ways in which a person proves that two identities are theirs."""
