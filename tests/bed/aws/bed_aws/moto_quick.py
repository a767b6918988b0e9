"""moto without the work that it repeats: fifty drains at once put a hundred events on the bus and ask for fifty instances, and
what that took of the processors' time is in life not the cluster's. What moto answers is unchanged.
"""

from collections.abc import Callable, Iterable
from functools import cache

import moto.backends
import moto.core.responses
from moto.events.models import EventPattern


def make_quick() -> None:
    """For all of this process."""
    # Which rules let an event through is the ruler's to say; moto hands nothing on.
    EventPattern.matches_event = lambda pattern, event: False
    # For each request it reads its own folder and lists a class's methods: a third of a DescribeInstances.
    moto.backends.list_of_moto_modules = cache(_listed(moto.backends.list_of_moto_modules))
    moto.core.responses.method_names_from_class = cache(moto.core.responses.method_names_from_class)


def _listed(generated: Callable[[], Iterable[str]]) -> Callable[[], list[str]]:
    return lambda: list(generated())
