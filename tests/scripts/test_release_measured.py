"""A release needs a recent measurement by the present bench. Dates are given: no test depends on the day."""

import unittest
from datetime import date, timedelta

from script import ROOT  # noqa: F401  # isort: skip

from release_bundle import measured
from release_bundle.errors import ReleaseError

DAY = date(2030, 1, 1)
LAST_DAY = DAY + timedelta(days=measured.MOST_DAYS)
GOOD = {"date": str(DAY), "sources": "0123456789ab", "commit": "commit ba9876543210"}
PRESENT = "0123456789abcdef0123456789abcdef01234567"


class Measured(unittest.TestCase):
    def refused(self, words: str, today: date = LAST_DAY, present: str = PRESENT, **changed: str) -> None:
        with self.assertRaisesRegex(ReleaseError, words):
            measured.check(GOOD | changed, today, present)

    def test_recent_page_of_the_present_bench_passes(self) -> None:
        measured.check(GOOD, LAST_DAY, PRESENT)

    def test_old_page_is_refused_with_its_age(self) -> None:
        self.refused(rf"is {measured.MOST_DAYS + 1} days old.*: `make bench`", today=LAST_DAY + timedelta(days=1))

    def test_page_of_another_bench_is_refused(self) -> None:
        self.refused("other sources", present="f" * 40)
        self.refused("other sources", sources="")

    def test_page_of_uncommitted_sources_is_refused(self) -> None:
        self.refused("in no commit", commit="commit ba9876543210 **with changes**")
