"""The last fifty suggestions (R-261)."""

from __future__ import annotations

from codecompanion.session.complete.suggestion_cache import SuggestionCache


def test_fifty_suggestions_are_kept_and_the_oldest_is_dropped_first():
    cache = SuggestionCache()
    for number in range(51):
        cache.put("m", str(number), (f"text {number}",))
    assert len(cache) == 50
    assert cache.get("m", "0") is None
    assert cache.get("m", "1") == ("text 1",)
    cache.put("m", "1", ("other",))
    cache.put("m", "51", ())
    assert cache.get("m", "1") is None, "an entry keeps its age"
    assert cache.get("m", "51") == ()


def test_another_model_has_its_own_suggestions():
    cache = SuggestionCache()
    cache.put("a", "b", ("x",))
    assert cache.get("b", "b") is None
