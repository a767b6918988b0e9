"""No sentence of the pages is longer than thirty words."""

import re
import unittest

from pages import LINK, ROOT, name, prose, text

# What a command writes between two comments is its own.
WRITTEN = re.compile(r"<!-- [^>]*written by .*?<!-- end of [^>]*-->", re.DOTALL)
PAGES = [name(page) for page in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]]
MOST_WORDS = 30


def sentences(page: str) -> list[str]:
    """Those of paragraphs, of items of lists, and of the cells of tables, where `·` stands between items."""
    text = re.sub(r"<picture>.*?</picture>", "", WRITTEN.sub("", prose(page)), flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "code", LINK.sub(r"\1", text))
    text = re.sub(r"^ *(?:[*-]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^#.*$|^[| :-]+$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"\||(?<= )·(?= )", "\n\n", text)
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", text))
    return [sentence for block in blocks for sentence in re.split(r"(?<=[.?!])[*)]* ", block) if sentence]


class Sentences(unittest.TestCase):
    def test_none_is_longer_than_thirty_words(self) -> None:
        for page in PAGES:
            for sentence in sentences(page):
                with self.subTest(page=page, sentence=sentence):
                    self.assertLessEqual(len(sentence.split()), MOST_WORDS)

    def test_what_a_colon_announces_follows_it(self) -> None:
        for page in PAGES:
            for line, after in re.findall(r"^(?![|#]).*?([^|\n]*:)\n\n(.*)$", text(page), flags=re.MULTILINE):
                with self.subTest(page=page, line=line, after=after):
                    self.assertRegex(after, r"^\s*(\||[*>-] |\d+\. |```|<)")


if __name__ == "__main__":
    unittest.main()
