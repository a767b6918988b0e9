"""Each rule of template.yaml field by field: what is one field away from a notice is no notice. Made from the patterns."""

import copy
import unittest
from collections.abc import Iterator
from typing import Any

from test_template import RULES, SAMPLES, patterns

from bed_aws.ruler import Ruler

Path = tuple[str, ...]
Event = dict[str, Any]
ABSENT = object()

def branches(pattern: dict[str, Any]) -> list[dict[str, Any]]:
    """A pattern without `$or`, for each of its alternatives."""
    common = {name: below for name, below in pattern.items() if name != "$or"}
    return [{**common, **alternative} for alternative in pattern.get("$or", [{}])]


def leaves(pattern: dict[str, Any], path: Path = ()) -> Iterator[tuple[Path, list[Any]]]:
    """Each field that a pattern looks at, with what it may be."""
    for name, below in pattern.items():
        if isinstance(below, list):
            yield (*path, name), below
        else:
            yield from leaves(below, (*path, name))


def misses(filters: list[Any]) -> Iterator[Any]:
    """What a field may not be, near what it may: another word, another type, nothing."""
    words = [one for one in filters if isinstance(one, str)]
    exists = [one.get("exists") for one in filters if not isinstance(one, str)]
    assert None not in exists, f"what is near {filters} is not known here"
    if False not in exists:
        # For EventBridge a field that has fields of its own is not there itself.
        yield from (ABSENT, {"evaporate": "evaporate"})
    if True not in exists:
        yield from ("", "evaporate", 5, True, None, ["evaporate"])
        for word in words:
            near = (word.swapcase(), word[:-1], f"{word}s", f" {word}", int(word) if word.isdigit() else None)
            yield from (value for value in near if value != word)


def changed(event: Event, path: Path, value: Any) -> Event:
    """The event with another value in one place."""
    event = copy.deepcopy(event)
    *way, last = path
    place = event
    for name in way:
        place = place[name]
    if value is ABSENT:
        place.pop(last, None)
    else:
        place[last] = value
    return event


class EachRule(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.patterns = patterns()
        cls.rules_for = Ruler(cls.patterns).rules_for
        cls.samples = {rule: [SAMPLES[name] for name in RULES[rule]] for rule in cls.patterns}

    def test_it_has_samples_that_it_lets_through(self) -> None:
        self.assertEqual(set(self.samples), set(self.patterns))
        for rule, samples in self.samples.items():
            for sample in samples:
                self.assertEqual(self.rules_for(sample), [rule])

    def test_foreign_and_replayed_events_do_not_match(self) -> None:
        for rule, samples in self.samples.items():
            for field, value in (("account", "999999999999"), ("replay-name", "again")):
                for sample in samples:
                    with self.subTest(rule=rule, field=field):
                        self.assertEqual(self.rules_for({**sample, field: value}), [])

    def test_it_looks_at_each_field_that_it_names(self) -> None:
        for rule, pattern in self.patterns.items():
            for branch in branches(pattern):
                passes = Ruler({rule: branch}).rules_for
                samples = [sample for sample in self.samples[rule] if passes(sample)]
                self.assertTrue(samples, branch)
                for path, filters in leaves(branch):
                    for value in misses(filters):
                        for sample in samples:
                            with self.subTest(rule=rule, field=path, value=value):
                                self.assertEqual(self.rules_for(changed(sample, path, value)), [])


if __name__ == "__main__":
    unittest.main()
