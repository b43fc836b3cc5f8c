"""The fake as a process: `python -m frontdesk_testing.telegram --port 8081`."""

from frontdesk_testing.telegram.main import main

main()
