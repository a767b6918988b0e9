"""Identifiers, settings and parameters use none of the words that the glossary has given up."""

import re
import unittest

from pages import ROOT, rows, section
from test_names import PARAMETERS

# They are plain words too, and what they mean no identifier says. Only a reader holds the code to these.
PLAIN = {
    "act", "action", "announce", "asked", "attempt", "goes", "held", "hold", "interruption", "later", "left", "news", "owner",
    "place", "room", "seen", "share", "standing", "surely", "told", "told at", "way",
}  # fmt: skip
# Words in the sense of others: tokio's method, a sign in a text, and the receipt's step `handed-on`.
OTHERS = {"mark_unchanged", "what_is_clipped_ends_with_a_mark", "HandedOn"}
FORMS = {"hand on": "hand_on|hands_on|handed_on|handing_on", "nobody's": "nobodys", "shut out": "shut_out|shuts_out", "hear": "hear|hears|heard",
         "wish": "wish|wishes", "reckon": "reckon|reckons|reckoned", "mend": "mend|mends|mended"}  # fmt: skip


def given_up() -> set[str]:
    table = rows(section("docs/contributing/glossary.md", "## Words no longer used"))
    return {word.strip() for row in table for word in re.split(r", (?!(?:of|for|in)\b)", re.sub(r", (?:of|for|in) .*", "", row[0]))}


def identifiers(code: str) -> set[str]:
    without_texts = re.sub(r'"(?:[^"\\]|\\[\s\S])*"|//.*', " ", code)
    return set(re.findall(r"\b[A-Za-z_]\w*", without_texts))


def parts(identifier: str) -> str:
    return "_".join(part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", identifier))


class Identifiers(unittest.TestCase):
    def test_none_has_a_word_that_the_glossary_has_given_up(self) -> None:
        words = given_up() - PLAIN
        self.assertLessEqual({"mark", "stranded", "hand on", "anew", "nobody's"}, words)
        forms = "|".join(FORMS.get(word, word.replace(" ", "_")) for word in words)
        pattern = re.compile(rf"(?:^|_)(?:{forms})(?:_|$)")
        sources = [file for folder in ("crates", "functions", "tests", "bench", "demo") for file in (ROOT / folder).rglob("*.rs")]
        named = {str(file.relative_to(ROOT)): identifiers(file.read_text()) for file in sources}
        for file, names in {**named, "template.yaml": PARAMETERS}.items():
            for identifier in names - OTHERS:
                with self.subTest(file=file, identifier=identifier):
                    self.assertIsNone(pattern.search(parts(identifier)), "docs/contributing/glossary.md has the word to use")

    def test_what_is_plain_is_in_the_glossary(self) -> None:
        self.assertLessEqual(PLAIN, given_up())


if __name__ == "__main__":
    unittest.main()
