"""Makes helper functions available by name to the tests of the documentation."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
