"""The pages name all that a reader meets in AWS or in a receipt, and nothing that is not there."""

import re
import unittest
from functools import cache

from pages import PAGES, ROOT, code, name, rows, section, text

TEMPLATE = text("template.yaml")
PARAMETERS = set(re.findall(r"^  (\w+):$", TEMPLATE.split("\nParameters:\n")[1].split("\nRules:\n")[0], re.M))
# Those of the templates beside the stack's.
OTHER_PARAMETERS = {
    name
    for file in (ROOT / "deploy/cloudformation").glob("*.yaml")
    for name in re.findall(r"^  (\w+):$", file.read_text().split("\nParameters:\n")[1].split("\nResources:\n")[0], re.M)
}
TROUBLESHOOTING = "docs/troubleshooting.md"
# They tell of names that there were.
PAST = {"CHANGELOG.md"}
# Of other programs' commands and templates, in this form too.
OTHERS = set("""Enabled OrganizationalUnitIds ParameterKey DurationBeforeInterruption InstanceId InvocationType Key Name
PropagateAtLaunch Ready ResourceId ResourceType TerminateHookAbandon Value Values FailureToleranceCount
MaxConcurrentCount""".split())


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@cache
def pattern(words: str) -> re.Pattern:
    """What fits a sentence with places that are left open: `…` on a page, `{…}` in the code."""
    return re.compile(".*".join(map(re.escape, re.split(r"…|\{[^}]*\}", words))))


@cache
def said() -> list[str]:
    """The sentences that the functions say, with `…` for what is filled in."""
    texts = re.findall(r'"((?:[^"\\\n]|\\.)+)"', code())
    texts = (re.sub(r"\{[^}]*\}", "…", text.replace('\\"', '"')) for text in texts)
    return sorted({text for text in texts if len(text.replace("…", "")) > 9 and " " in text})


class Troubleshooting(unittest.TestCase):
    def test_each_alarm_is_found_by_the_name_that_it_pages_with(self) -> None:
        alarms = set(re.findall(r"^  (\w+Alarm):$", TEMPLATE, re.M))
        for page in ("docs/metrics.md", TROUBLESHOOTING):
            with self.subTest(page=page):
                self.assertEqual(set(re.findall(r"`(\w+Alarm)`", section(page, "## The alarms"))), alarms)

    def test_it_has_each_type_of_failure(self) -> None:
        failures = re.findall(r'=> "([A-Z]\w+)",', text("crates/drainer/src/failure.rs").split("fn error_type")[1].split("\n    }\n")[0])
        self.assertGreater(len(failures), 15)
        body = section(TROUBLESHOOTING, "## By error type")
        found = set(re.findall(r"^### (\w+)$", body, re.M)) | {type for row in rows(body) for type in quoted(row[0])}
        for failure in failures:
            with self.subTest(failure=failure):
                self.assertIn(failure, found)

    def test_it_has_each_reason_for_which_a_notice_is_ignored(self) -> None:
        source = re.sub(r"\\\n\s*", "", text("crates/core/src/decision/reason.rs")).split("enum Refusal")[0]
        reasons = [reason for reason in re.findall(r'"((?:[^"\\]|\\.)*)"', source) if len(reason) > 9 and " " in reason]
        reasons += re.findall(r'f(?:, |\.write_str\()"((?:neither|the setting) [^"]*)"', text("crates/core/src/decision/switch.rs"))
        self.assertGreater(len(reasons), 35)
        told = [words for row in rows(section(TROUBLESHOOTING, "## Ignored, and should not be")) for words in quoted(row[0])]
        for reason in reasons:
            with self.subTest(reason=reason):
                self.assertTrue(any(pattern(words).match(re.sub(r"\{[^}]*\}", "…", reason)) for words in told))

    def test_log_lines_and_reasons_are_those_of_the_code(self) -> None:
        for heading in ("## By log line", "## Ignored, and should not be"):
            for row in rows(section(TROUBLESHOOTING, heading)):
                for words in quoted(row[0]):
                    with self.subTest(heading=heading, words=words):
                        whole = (pattern(text).fullmatch(words) for text in said())
                        begun = (pattern(words).match(text) for text in said())
                        self.assertTrue(any(whole) or any(begun))

    def test_each_warning_is_found_by_its_first_words(self) -> None:
        warning = re.compile(r'tracing::(?:warn|error)!\(\s*(?:[^";]*,\s*)?"((?:[^"\\]|\\.)*)"', re.DOTALL)
        sources = [file.read_text().split("#[cfg(test)]")[0] for file in (ROOT / "crates/drainer/src").rglob("*.rs")]
        lines = {re.sub(r"\\\s+", "", line) for source in sources for line in warning.findall(source)}
        self.assertGreater(len(lines), 30)
        body = section(TROUBLESHOOTING, "## By log line")
        for line in lines:
            # As much as anybody types into a search box.
            begun = re.sub(r'\\"\{[^}]*\}\\"|\{[^}]*\}', "…", line)[:20].rstrip(" :;,…")
            with self.subTest(line=line):
                self.assertIn(begun, body)


class Settings(unittest.TestCase):
    def test_no_page_names_a_variable_that_is_not_there(self) -> None:
        of_the_functions = set(re.findall(r"\bSPILLWAY_[A-Z_]+\b", TEMPLATE))
        of_developers = set()
        scripts = [file for file in (ROOT / "scripts").iterdir() if file.is_file()]
        for file in [ROOT / "Makefile", *scripts, *(ROOT / "tests").rglob("*.rs"), *(ROOT / "bench").rglob("*.rs")]:
            of_developers |= set(re.findall(r"\bSPILLWAY_[A-Z_]+\b", file.read_text()))
        for page in PAGES:
            if name(page) not in PAST:
                known = of_developers if page.name == "development.md" or "measured" in page.parts else of_the_functions
                for variable in sorted(set(re.findall(r"\bSPILLWAY_[A-Z_]*[A-Z]\b", page.read_text()))):
                    with self.subTest(page=name(page), variable=variable):
                        self.assertIn(variable, known)

    def test_no_page_gives_a_value_to_a_parameter_that_is_not_there(self) -> None:
        for page in PAGES:
            if name(page) not in PAST:
                for parameter in sorted(set(re.findall(r"[`' ]([A-Z][a-z]+[A-Za-z]*)=(?=[\w\"'/])", page.read_text())) - OTHERS):
                    with self.subTest(page=name(page), parameter=parameter):
                        self.assertIn(parameter, PARAMETERS | OTHER_PARAMETERS)


if __name__ == "__main__":
    unittest.main()
