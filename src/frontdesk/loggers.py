"""The loggers, one per subject. Log lines never contain message text, tokens or claims."""

import logging

host = logging.getLogger("frontdesk.host")
access = logging.getLogger("frontdesk.access")
audit = logging.getLogger("frontdesk.audit")
runs = logging.getLogger("frontdesk.runs")
tasks = logging.getLogger("frontdesk.tasks")
store = logging.getLogger("frontdesk.store")
http = logging.getLogger("frontdesk.http")
deliveries = logging.getLogger("frontdesk.deliveries")
