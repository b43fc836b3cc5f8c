"""Who is at the door, and whether they may come in."""
