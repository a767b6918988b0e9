"""Official programs are fetched where they can be had, and never run when their sum is another. They are served from this machine."""

import hashlib
import io
import json
import re
import tarfile
import tempfile
import threading
import unittest
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from script import ROOT, load

fetch_released = load("fetch-released")
CONTROL_PLANE = ROOT / "tests/bed/control-plane"
PLATFORM = "linux/amd64"
GO_MOD = "require (\n\tk8s.io/kubernetes v1.2.3 // indirect\n\tgo.etcd.io/etcd/server/v3 v3.6.8 // indirect\n)\n"
PROGRAM = b"\x7fELF the API server"
ANOTHER = hashlib.sha256(b"another").hexdigest()


def archive() -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as tar:
        info = tarfile.TarInfo("etcd-v3.6.8/etcd")
        info.size = len(PROGRAM)
        tar.addfile(info, io.BytesIO(PROGRAM))
    return written.getvalue()


ARCHIVE = archive()


def sum_of(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


class Server(BaseHTTPRequestHandler):
    served: dict[str, bytes]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        contents = self.served.get(self.path)
        self.send_response(404 if contents is None else 200)
        self.end_headers()
        self.wfile.write(contents or b"")

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


class Fetched(unittest.TestCase):
    def setUp(self) -> None:
        self.served = {"/v1.2.3/linux/amd64/kube-apiserver": PROGRAM, "/v3.6.8/etcd-3.6.8.tar.gz": ARCHIVE}
        self.asked: list[str] = []
        handler = type("Served", (Server,), {"served": self.served, "asked": self.asked})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.programs = self.folder / "programs"
        self.programs.mkdir()

    def api_server(self, sums: str = "kube-apiserver.sha256") -> str:
        return f"kube-apiserver k8s.io/kubernetes {self.url}/{{version}}/{{os}}/{{arch}}/kube-apiserver {sums}"

    def etcd(self, member: str = "etcd-{version}/etcd") -> str:
        return f"etcd go.etcd.io/etcd/server/v3 {self.url}/{{version}}/etcd-{{number}}.tar.gz SUMS {member}"

    def fetch(self, *lines: str) -> tuple[int, list[str], str]:
        listed, go_mod = self.folder / "released.txt", self.folder / "go.mod"
        listed.write_text("\n".join(("# comment", "", *lines)))
        go_mod.write_text(GO_MOD)
        arguments = [str(listed), str(go_mod), PLATFORM, str(self.programs), "kube-apiserver", "etcd", "kubectl"]
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = fetch_released.main(arguments)
        return code, out.getvalue().split(), err.getvalue()

    def assert_refused(self, *lines: str, because: str) -> None:
        code, put, err = self.fetch(*lines)
        self.assertEqual((code, put), (1, []))
        self.assertRegex(err, because)
        self.assertEqual(list(self.programs.iterdir()), [], "nothing is left to run")

    def assert_left_to_be_built(self, *lines: str, because: str) -> None:
        code, put, err = self.fetch(*lines)
        self.assertEqual((code, put), (0, []))
        self.assertRegex(err, rf"^note: what cannot be fetched is built: .*\(.*{because}.*\)\n$")
        self.assertEqual(list(self.programs.iterdir()), [])

    def test_a_program_and_one_in_an_archive_are_put_there_to_be_run(self) -> None:
        self.served["/v1.2.3/linux/amd64/kube-apiserver.sha256"] = sum_of(PROGRAM).encode()
        self.served["/v3.6.8/SUMS"] = f"{ANOTHER}  other.zip\n{sum_of(ARCHIVE)}  etcd-3.6.8.tar.gz\n".encode()
        self.assertEqual(self.fetch(self.api_server(), self.etcd()), (0, ["kube-apiserver", "etcd"], ""))
        for program in ("kube-apiserver", "etcd"):
            self.assertEqual((self.programs / program).read_bytes(), PROGRAM)
            self.assertEqual((self.programs / program).stat().st_mode & 0o777, 0o755)

    def test_file_with_another_sum_is_refused(self) -> None:
        self.served["/v1.2.3/linux/amd64/kube-apiserver.sha256"] = ANOTHER.encode()
        self.assert_refused(self.api_server(), because=f"kube-apiserver: its SHA-256 is .*, published is {ANOTHER}")

    def test_a_file_without_a_published_sum_is_left_to_be_built(self) -> None:
        self.assert_left_to_be_built(self.api_server(), because="kube-apiserver.sha256: HTTP Error 404")
        self.served["/v3.6.8/SUMS"] = f"{sum_of(ARCHIVE)}  other.zip\n".encode()
        self.assert_left_to_be_built(self.etcd(), because="SUMS does not have it")
        self.served["/v3.6.8/SUMS"] = json.dumps({"assets": [{"name": "etcd-3.6.8.tar.gz"}]}).encode()
        self.assert_left_to_be_built(self.etcd(), because="SUMS does not have it")
        self.assertNotIn("/v3.6.8/etcd-3.6.8.tar.gz", self.asked)

    def test_a_pin_wins_over_what_is_published(self) -> None:
        self.served["/v1.2.3/linux/amd64/kube-apiserver.sha256"] = sum_of(PROGRAM).encode()
        pin = f"pin kube-apiserver {PLATFORM} {ANOTHER}"
        self.assert_refused(pin, self.api_server(), because=f"its SHA-256 is .*, pinned is {ANOTHER}")
        self.assertNotIn("/v1.2.3/linux/amd64/kube-apiserver.sha256", self.asked)
        pins = [f"pin kube-apiserver {PLATFORM} {sum_of(PROGRAM)}", f"pin kube-apiserver linux/arm64 {ANOTHER}"]
        self.assertEqual(self.fetch(*pins, self.api_server()), (0, ["kube-apiserver"], ""))

    def test_an_archive_without_the_program_is_refused(self) -> None:
        self.served["/v3.6.8/SUMS"] = sum_of(ARCHIVE).encode()
        self.assert_refused(self.etcd("etcd/etcd"), because="there is no file etcd/etcd in it")


class TheList(unittest.TestCase):
    """The project's own."""

    def test_list_has_every_program_in_the_built_version(self) -> None:
        listed = (CONTROL_PLANE / "released.txt").read_text()
        go_mod = (CONTROL_PLANE / "go.mod").read_text()
        tools = re.findall(r"^\t(\S+)$", go_mod.partition("tool (")[2].partition(")")[0], re.MULTILINE)
        programs = {"etcd" if "/etcd/" in tool else tool.rpartition("/")[2] for tool in tools}
        oldest = (CONTROL_PLANE / "oldest.txt").read_text()
        for versions, named in ((go_mod, programs), (oldest, {"kube-apiserver", "kube-controller-manager", "kube-scheduler"})):
            found = {one.program: one for one in fetch_released.read(listed, versions, PLATFORM)}
            self.assertLessEqual(named, found.keys())
            for program in named:
                self.assertRegex(found[program].url, r"^https://[^{]*v\d+\.\d+\.\d+[^{]*$")
                self.assertRegex(found[program].sums, r"^https://[^{]*v\d+\.\d+\.\d+[^{]*$")


if __name__ == "__main__":
    unittest.main()
