"""The loggers, one for each subject. No log line has message text, tokens or claims in it."""

import logging

host = logging.getLogger("frontdesk.host")
access = logging.getLogger("frontdesk.access")
audit = logging.getLogger("frontdesk.audit")
runs = logging.getLogger("frontdesk.runs")
tasks = logging.getLogger("frontdesk.tasks")
store = logging.getLogger("frontdesk.store")
http = logging.getLogger("frontdesk.http")
deliveries = logging.getLogger("frontdesk.deliveries")
