"""`python -m codecompanion`: the command line."""

import sys

from codecompanion.cli.__main__ import main

sys.exit(main())
