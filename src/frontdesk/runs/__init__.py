"""The pipeline steps after admission: deferring, starting and ending runs."""
