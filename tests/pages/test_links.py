"""Every link leads somewhere: to a file that is there, and to a heading that it has."""

import re
import unittest

from pages import PAGES, ROOT, anchors, links, name

# What sources and scripts say of the pages, as text: `docs/install.md`, `docs/troubleshooting.md#podslost`.
MENTION = re.compile(r"\bdocs/[\w./-]+\.(?:md|json|txt|png)(?:#[\w-]+)?")
SOURCES = ("crates", "functions", "bench", "demo", "tests", "tools", "scripts", "deploy", "events")


class Links(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self) -> None:
        for page in PAGES:
            for link in links(page):
                if re.match(r"[a-z]+:", link):
                    continue
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                with self.subTest(page=name(page), link=link):
                    self.assertTrue(target.exists(), "no such file")
                    if anchor:
                        self.assertIn(anchor, anchors(target))

    def test_every_page_that_the_sources_name_is_there(self) -> None:
        files = [file for folder in SOURCES for file in (ROOT / folder).rglob("*") if file.is_file()]
        for file in [*files, ROOT / "template.yaml", ROOT / "Makefile"]:
            if file.suffix in (".png", ".json", ".pyc") or "target" in file.parts:
                continue
            for mention in MENTION.findall(file.read_text(errors="ignore")):
                path, _, anchor = mention.partition("#")
                with self.subTest(file=name(file), page=mention):
                    self.assertTrue((ROOT / path).exists(), "no such page")
                    if anchor:
                        self.assertIn(anchor, anchors(ROOT / path))

    def test_readme_leads_to_every_page(self) -> None:
        readme = {link.partition("#")[0] for link in links(ROOT / "README.md")}
        for page in (ROOT / "docs").glob("*.md"):
            with self.subTest(page=page.name):
                self.assertIn(f"docs/{page.name}", readme)



if __name__ == "__main__":
    unittest.main()
