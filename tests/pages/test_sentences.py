"""No sentence of the pages that are read at three in the morning is longer than thirty words."""

import re
import unittest

from pages import LINK, prose

PAGES = ("docs/what-happens.md", "docs/daemonsets.md", "docs/other-drainers.md", "docs/eks-gaps.md")
MOST_WORDS = 30


def sentences(page: str) -> list[str]:
    """Those of paragraphs, of items of lists, and of the cells of tables."""
    text = re.sub(r"`[^`]*`", "code", LINK.sub(r"\1", prose(page)))
    text = re.sub(r"^ *(?:[*-]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^#.*$|^[| :-]+$", "\n", text, flags=re.MULTILINE).replace("|", "\n\n")
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", text))
    return [sentence for block in blocks for sentence in re.split(r"(?<=[.?!])[*)]* ", block) if sentence]


class Sentences(unittest.TestCase):
    def test_none_is_longer_than_thirty_words(self) -> None:
        for page in PAGES:
            for sentence in sentences(page):
                with self.subTest(page=page, sentence=sentence):
                    self.assertLessEqual(len(sentence.split()), MOST_WORDS)


if __name__ == "__main__":
    unittest.main()
