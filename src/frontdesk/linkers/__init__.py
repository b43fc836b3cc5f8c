"""Linkers: methods to prove that two identities belong to one person."""
