"""Official programs are fetched where they can be had, and never run when their sum is another."""

import hashlib
import io
import json
import re
import tarfile
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from script import ROOT, load

fetch_released = load("fetch-released")
CONTROL_PLANE = ROOT / "tests/bed/control-plane"
GO_MOD = "require (\n\tk8s.io/kubernetes v1.2.3 // indirect\n\tgo.etcd.io/etcd/server/v3 v3.6.8 // indirect\n)\n"
API_SERVER = "kube-apiserver k8s.io/kubernetes https://host/{version}/{arch}/kube-apiserver kube-apiserver.sha256"
ETCD = "etcd go.etcd.io/etcd/server/v3 https://host/{version}/etcd-{number}.tar.gz SUMS etcd/etcd"
PROGRAM = b"\x7fELF the API server"
ANOTHER = hashlib.sha256(b"another").hexdigest()


def archive() -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as tar:
        info = tarfile.TarInfo("etcd/etcd")
        info.size = len(PROGRAM)
        tar.addfile(info, io.BytesIO(PROGRAM))
    return written.getvalue()


ARCHIVE = archive()
PROGRAMS_SUM, ARCHIVES_SUM = (hashlib.sha256(one).hexdigest() for one in (PROGRAM, ARCHIVE))
FILES = {"v1.2.3/amd64/kube-apiserver": PROGRAM, "v3.6.8/etcd-3.6.8.tar.gz": ARCHIVE}


class Fetched(unittest.TestCase):
    def fetch(self, *lines: str, **sums: str) -> tuple[int, list[str], str]:
        """Exit code, programs and errors, with the published sums."""
        served = FILES | {"v1.2.3/amd64/kube-apiserver.sha256": sums.get("api_server", "").encode()}
        served["v3.6.8/SUMS"] = sums.get("etcd", "").encode()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        listed, go_mod, self.programs = (self.folder / name for name in ("released.txt", "go.mod", "programs"))
        listed.write_text("\n".join(("# comment", "", *lines)))
        go_mod.write_text(GO_MOD)
        self.programs.mkdir()
        arguments = [str(listed), str(go_mod), "linux/amd64", str(self.programs), "kube-apiserver", "etcd", "kubectl"]
        web = patch.object(fetch_released.Web, "get", lambda _, url: served[url.removeprefix("https://host/")])
        with web, redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = fetch_released.main(arguments)
        return code, out.getvalue().split(), err.getvalue()

    def test_programs_with_their_sums_are_put_there(self) -> None:
        sums = f"{ANOTHER}  other.zip\n{ARCHIVES_SUM}  etcd-3.6.8.tar.gz\n"
        fetched = self.fetch(API_SERVER, ETCD, api_server=PROGRAMS_SUM, etcd=sums)
        self.assertEqual(fetched, (0, ["kube-apiserver", "etcd"], ""))
        for program in ("kube-apiserver", "etcd"):
            self.assertEqual((self.programs / program).read_bytes(), PROGRAM)
            self.assertEqual((self.programs / program).stat().st_mode & 0o777, 0o755)

    def test_file_with_another_sum_is_refused(self) -> None:
        # A pin wins over what is published.
        pin = f"pin kube-apiserver linux/amd64 {ANOTHER}"
        for lines, published in (([API_SERVER], ANOTHER), ([pin, API_SERVER], PROGRAMS_SUM)):
            code, put, err = self.fetch(*lines, api_server=published)
            self.assertEqual((code, put, list(self.programs.iterdir())), (1, [], []))
            self.assertRegex(err, f"kube-apiserver: its SHA-256 is .* is {ANOTHER}")

    def test_file_without_a_sum_is_left_to_be_built(self) -> None:
        for sums in (f"{ARCHIVES_SUM}  other.zip\n", json.dumps({"assets": [{"name": "etcd-3.6.8.tar.gz"}]})):
            code, put, err = self.fetch(ETCD, etcd=sums)
            self.assertEqual((code, put, list(self.programs.iterdir())), (0, [], []))
            self.assertRegex(err, "^note: what cannot be fetched is built: etcd .*SUMS does not have it")

    def test_list_has_every_program_in_the_built_version(self) -> None:
        listed, go_mod, oldest = (
            (CONTROL_PLANE / file).read_text() for file in ("released.txt", "go.mod", "oldest.txt")
        )
        tools = re.findall(r"^\t(\S+)$", go_mod.partition("tool (")[2].partition(")")[0], re.MULTILINE)
        programs = {"etcd" if "/etcd/" in tool else tool.rpartition("/")[2] for tool in tools}
        of_kubernetes = {"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
        for versions, named in ((go_mod, programs), (oldest, of_kubernetes)):
            found = {one.program: one for one in fetch_released.read(listed, versions, "linux/amd64")}
            for program in named:
                for url in (found[program].url, found[program].sums):
                    self.assertRegex(url, r"^https://[^{]*v\d+\.\d+\.\d+[^{]*$")


if __name__ == "__main__":
    unittest.main()
