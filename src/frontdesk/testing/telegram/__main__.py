"""The fake as a process: `python -m frontdesk.testing.telegram --port 8081`."""

from frontdesk.testing.telegram.main import main

main()
