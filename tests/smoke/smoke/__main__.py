"""`python -m smoke`; scripts/smoke calls it."""

import sys

from smoke.command import main

sys.exit(main(sys.argv[1:]))
