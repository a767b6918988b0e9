"""The pictures of docs/ show what the tool draws today."""

from __future__ import annotations

import json
import unittest

from .pictures import DOCS, PICTURES, WORDS, words_of


class ThePictures(unittest.TestCase):
    def test_each_says_what_its_receipts_say_today(self) -> None:
        noted = json.loads(WORDS.read_text())
        stale = [picture.file for picture in PICTURES if noted.get(picture.file) != words_of(picture.html)]
        self.assertEqual(stale, [], "made from other words: run scripts/pictures and look at them")

    def test_each_is_there(self) -> None:
        self.assertEqual([picture.file for picture in PICTURES if not (DOCS / picture.file).exists()], [])


if __name__ == "__main__":
    unittest.main()
