"""Sessions, drafts, contents and leases on disk: one SQLite file and a blob folder (design, section Store)."""

from codecompanion.store.lease import Lease
from codecompanion.store.log.scratch import Calibration
from codecompanion.store.log.totals import SessionInfo
from codecompanion.store.opening import open_memory_store, open_store
from codecompanion.store.search.find import SearchHit
from codecompanion.store.store import Store, durable

__all__ = ["Calibration", "Lease", "SearchHit", "SessionInfo", "Store", "durable", "open_memory_store", "open_store"]
