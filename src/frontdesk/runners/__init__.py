"""Who works through what was put off: one process, or many."""
