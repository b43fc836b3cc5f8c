"""`python -m frontdesk.cli`: the same as `frontdesk`."""

import sys

from frontdesk.cli import main

sys.exit(main())
