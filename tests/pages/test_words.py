"""Pages use none of the words that the glossary has given up, as far as these have no plain sense besides."""

import re
import unittest

from pages import PAGES, name, prose, rows, section

# As they stand in the glossary, with the forms that they take in a sentence. The others of its table are plain verbs too.
GIVEN_UP = {
    "anew": "anew",
    "mend": "mend(s|ed|ing)?",
    "reckon": "reckon(s|ed|ing)?",
    "wish": "wish(es|ed)?",
    "outlook": "outlooks?",
    "prospect": "prospects?",
    "stranded": "stranded",
    "shut out": "shuts? out",
}
# A changelog tells of what there was.
NOT_OF_TODAY = {"CHANGELOG.md", "docs/contributing/glossary.md"}


class Words(unittest.TestCase):
    def test_the_glossary_has_given_them_up(self) -> None:
        given_up = {word for row in rows(section("docs/contributing/glossary.md", "## Words no longer used")) for word in row[0].split(", ")}
        self.assertLessEqual(set(GIVEN_UP), given_up)

    def test_no_page_uses_one(self) -> None:
        word = re.compile(rf"\b({'|'.join(GIVEN_UP.values())})\b", re.IGNORECASE)
        for page in PAGES:
            if name(page) not in NOT_OF_TODAY and "decisions" not in page.parts:
                for line in re.sub(r"`[^`\n]*`", "", prose(page)).splitlines():
                    with self.subTest(page=name(page), line=line):
                        self.assertIsNone(word.search(line))


if __name__ == "__main__":
    unittest.main()
