"""moto without the work that it repeats: fifty drains at once put a hundred events on the bus and ask for fifty instances, and
what that took of the processors' time is in life not the cluster's. What moto decides and answers is unchanged.
"""

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any

import jsonpath_ng.ext
import moto.backends
import moto.core.responses
from moto.events.models import EventPattern

Matches = Callable[[EventPattern, dict[str, Any]], bool]

WHAT_IT_IS = ("source", "detail-type")


def make_quick() -> None:
    """For all of this process."""
    EventPattern.matches_event = _if_it_may(EventPattern.matches_event)
    # moto parses the paths of a target's input anew for each event.
    jsonpath_ng.ext.parse = lru_cache(jsonpath_ng.ext.parse)
    # For each request it reads its own folder and lists a class's methods: a third of a DescribeInstances.
    moto.backends.list_of_moto_modules = cache(_listed(moto.backends.list_of_moto_modules))
    moto.core.responses.method_names_from_class = cache(moto.core.responses.method_names_from_class)


def _if_it_may(matches: Matches) -> Matches:
    """Most rules are of other events, as two fields tell: only for the others moto copies and flattens the event."""

    def matches_event(pattern: EventPattern, event: dict[str, Any]) -> bool:
        of_what_it_is = {key: value for key, value in pattern.get_pattern().items() if key in WHAT_IT_IS}
        return pattern._does_event_match(event, of_what_it_is) and matches(pattern, event)

    return matches_event


def _listed(generated: Callable[[], Iterable[str]]) -> Callable[[], list[str]]:
    return lambda: list(generated())
