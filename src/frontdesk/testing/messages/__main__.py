"""The fake platform as a process: `python -m frontdesk.testing.messages --port 0 --log accepted.jsonl`."""

from frontdesk.testing.messages.platform.main import main

main()
