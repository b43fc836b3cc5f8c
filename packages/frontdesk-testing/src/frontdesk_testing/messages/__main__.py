"""The fake platform as a process: `python -m frontdesk_testing.messages --port 0 --log accepted.jsonl`."""

from frontdesk_testing.messages.platform.main import main

main()
