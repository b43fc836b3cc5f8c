"""Assembles the updates of a target into pieces that channels render."""
