"""scripts/check-direction, on a small crate with one thing wrong at a time."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SOUND = {
    "lib.rs": "//! Rooms:\n//! * `floor`: below\n//! * `roof`: above\n\nmod floor;\nmod roof;\n\nuse crate::roof::Roof;\n",
    "floor/mod.rs": "//! Below `crate::roof`.\n\nmod board;\n\npub(crate) struct Floor;\n",
    "floor/board.rs": 'use super::Floor;\n\nimpl Floor {\n    const TEXT: &str = "crate::roof";\n}\n',
    "roof.rs": "use crate::floor::Floor;\n\npub(crate) struct Roof(Floor);\n",
}


class TheDirection(unittest.TestCase):
    def problems(self, changed: dict[str, str]) -> list[str]:
        """What the script says of the sound crate with these files changed, one line for each problem."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (SOUND | changed).items():
                file = Path(folder) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            command = [sys.executable, ROOT / "scripts/check-direction", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = [line.removeprefix(f"{folder}/") for line in done.stderr.splitlines()]
        self.assertEqual(done.returncode, 1 if lines else 0, done.stderr)
        return [line.replace(f"{folder}/", "") for line in lines]

    def test_a_crate_in_order_passes(self) -> None:
        self.assertEqual(self.problems({}), [])

    def test_an_import_from_a_later_room_fails_however_it_is_written(self) -> None:
        for text, line in [
            ("use crate::roof::Roof;\n", 1),
            ("\nuse crate::{floor::Floor, roof::{self, Roof}};\n", 2),
            ("use super::super::roof::Roof;\n", 1),
            ("use super::super::{\n    roof::Roof,\n};\n", 1),
            ("fn above() {\n    let _ = crate::roof::Roof::new();\n}\n", 2),
        ]:
            with self.subTest(text=text):
                found = self.problems({"floor/board.rs": text})
                self.assertEqual(found, [f"floor/board.rs:{line}: floor uses the later room roof"])

    def test_tests_may_look_anywhere(self) -> None:
        planted = "use crate::roof::Roof;\n"
        inline = f"#[cfg(test)]\nmod tests {{\n    {planted}}}\n"
        folder = "#[cfg(test)]\nmod tests;\n"
        self.assertEqual(self.problems({"floor/board.rs": inline}), [])
        self.assertEqual(self.problems({"floor/board.rs": folder, "floor/board/tests.rs": planted}), [])
        self.assertEqual(self.problems({"floor/board.rs": folder, "floor/board/tests/more.rs": planted}), [])
        self.assertEqual(len(self.problems({"floor/board.rs": f"{inline}{planted}"})), 1)

    def test_methods_for_another_rooms_type_fail(self) -> None:
        planted = SOUND["roof.rs"] + "\nimpl Floor {\n    fn leak(&self) {}\n}\n"
        self.assertEqual(self.problems({"roof.rs": planted}), ["roof.rs:5: roof gives methods to Floor, a type of floor"])
        trait = SOUND["roof.rs"] + "\nimpl From<Floor> for Roof {\n}\n\nimpl Drop for Floor {\n}\n"
        self.assertEqual(self.problems({"roof.rs": trait}), [])

    def test_a_room_that_the_list_does_not_name_fails(self) -> None:
        self.assertEqual(
            self.problems({"cellar.rs": ""}), ["lib.rs: its doc's list of rooms does not name cellar"]
        )

    def test_a_type_name_that_stands_twice_fails(self) -> None:
        planted = SOUND["roof.rs"] + "enum Board {}\n"
        found = self.problems({"floor/board.rs": "struct Board;\n", "roof.rs": planted})
        self.assertEqual(found, ["roof.rs:4: the type name Board is taken: floor/board.rs:1"])

    def test_a_file_above_400_lines_fails_and_its_tests_do_not_count(self) -> None:
        tests = "#[cfg(test)]\nmod tests {\n" + "    // tested\n" * 9 + "}\n"
        self.assertEqual(self.problems({"roof.rs": "// so\n" * 400 + tests}), [])
        found = self.problems({"roof.rs": "// so\n" * 401})
        self.assertEqual(found, ["roof.rs: 401 lines without tests; the longest file has 400"])


if __name__ == "__main__":
    unittest.main()
