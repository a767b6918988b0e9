"""A right of deploy/ that no request has used is found by tests/rights/cluster.py."""

import json
import tempfile
import unittest
from pathlib import Path

import cluster


def line(right: str, code: int = 200, user: str = "arn:aws:sts::123456789012:assumed-role/spillway-drain/one") -> str:
    verb, resource = right.split(" ")
    about = dict(zip(("resource", "subresource"), resource.split("/"), strict=False))
    return json.dumps({"user": {"username": user}, "verb": verb, "objectRef": about, "responseStatus": {"code": code}})


class Rights(unittest.TestCase):
    def judged(self, lines: list[str]) -> int:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "bed-1.audit").write_text("\n".join(lines))
            return cluster.main(Path(folder))

    def test_each_right_has_to_be_used(self) -> None:
        rights = sorted(cluster.given())
        self.assertIn("create pods/eviction", rights)
        self.assertEqual(self.judged([line(right) for right in rights]), 0)
        for missing in rights:
            self.assertEqual(self.judged([line(right) for right in rights if right != missing]), 1, missing)

    def test_refused_requests_and_those_of_others_use_no_right(self) -> None:
        rights = sorted(cluster.given())
        for other in (line(rights[0], code=403), line(rights[0], user="bed-admin")):
            self.assertEqual(self.judged([other, *map(line, rights[1:])]), 1)


if __name__ == "__main__":
    unittest.main()
