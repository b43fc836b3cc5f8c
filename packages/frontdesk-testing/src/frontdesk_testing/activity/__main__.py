"""Runs the fake until it is stopped."""

from frontdesk_testing.activity.main import main

main()
