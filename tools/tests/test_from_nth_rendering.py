"""A webhook's template is tried by the announcer's own program, where that is."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from from_nth import rendering

# Stands in for the program, which is Rust's: it refuses one template.
PROGRAM = """#!/bin/sh
[ "$*" = "--template -" ] || exit 2
! grep -q NoSuchField || { echo "A drain begins: the template fails at line 1" >&2; exit 1; }
"""


class ATemplate(unittest.TestCase):
    def setUp(self) -> None:
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(mock.patch.dict(os.environ, {"CARGO_TARGET_DIR": folder}))
        self.program = Path(folder) / "debug" / rendering.NAME
        self.addCleanup(rendering.of.cache_clear)
        rendering.of.cache_clear()

    def build(self) -> None:
        self.program.parent.mkdir()
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def test_is_rendered_or_the_programs_words_say_why_not(self) -> None:
        self.build()
        self.assertEqual(rendering.of("{{ .Kind }}"), rendering.Rendered())
        self.assertEqual(
            rendering.of("{{ .NoSuchField }}"), rendering.Rendered("A drain begins: the template fails at line 1")
        )

    def test_of_which_nobody_can_tell_without_the_program_is_told_so(self) -> None:
        self.assertIsNone(rendering.of("{{ .Kind }}"))
