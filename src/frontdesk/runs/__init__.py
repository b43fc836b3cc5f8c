"""The steps of the pipeline that lie behind the gate: a run is deferred, or opened, and ended."""
