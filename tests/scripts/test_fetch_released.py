"""Official programs are fetched where they can be had, and never run when they are not what was pinned.

They are served from this machine.
"""

import hashlib
import io
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
HERE, ELSEWHERE = "linux/amd64", "linux/arm64"
PROGRAM = b"\x7fELF the API server"


def archive() -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as tar:
        info = tarfile.TarInfo("etcd-v3/etcd")
        info.size = len(PROGRAM)
        tar.addfile(info, io.BytesIO(PROGRAM))
    return written.getvalue()


SERVED = {"/kube-apiserver": PROGRAM, "/etcd.tar.gz": archive()}


class Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        contents = SERVED.get(self.path)
        self.send_response(404 if contents is None else 200)
        self.end_headers()
        self.wfile.write(contents or b"")

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


class Fetched(unittest.TestCase):
    def setUp(self) -> None:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.programs = self.folder / "programs"
        self.programs.mkdir()
        self.released = self.folder / "released.txt"

    def line(self, program: str, path: str, *more: str, platform: str = HERE, contents: bytes | None = None) -> str:
        served = SERVED.get(path, b"") if contents is None else contents
        return " ".join((program, platform, hashlib.sha256(served).hexdigest(), self.url + path, *more)) + "\n"

    def fetch(self, *lines: str) -> tuple[int, str, str]:
        self.released.write_text("# comment\n\n" + "".join(lines))
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = fetch_released.main([str(self.released), HERE, str(self.programs)])
        return code, out.getvalue(), err.getvalue()

    def test_a_program_and_one_in_an_archive_are_put_there_to_be_run(self) -> None:
        code, out, _ = self.fetch(
            self.line("kube-apiserver", "/kube-apiserver"), self.line("etcd", "/etcd.tar.gz", "etcd-v3/etcd")
        )
        self.assertEqual((code, out.split()), (0, ["kube-apiserver", "etcd"]))
        for program in ("kube-apiserver", "etcd"):
            self.assertEqual((self.programs / program).read_bytes(), PROGRAM)
            self.assertEqual((self.programs / program).stat().st_mode & 0o777, 0o755)

    def test_a_wrong_checksum_is_refused_and_nothing_is_left_to_run(self) -> None:
        code, out, err = self.fetch(self.line("kube-apiserver", "/kube-apiserver", contents=b"another"))
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, f"{self.url}/kube-apiserver: its SHA-256 is [0-9a-f]{{64}}, pinned is [0-9a-f]{{64}}")
        self.assertEqual(list(self.programs.iterdir()), [])

    def test_what_cannot_be_fetched_is_left_to_be_built(self) -> None:
        code, out, err = self.fetch(self.line("kubectl", "/kubectl"))
        self.assertEqual((code, out), (0, ""))
        self.assertIn("note: kubectl will be built", err)

    def test_what_is_for_another_platform_is_left_to_be_built(self) -> None:
        self.assertEqual(self.fetch(self.line("kube-apiserver", "/kube-apiserver", platform=ELSEWHERE)), (0, "", ""))

    def test_an_archive_without_the_program_is_refused(self) -> None:
        code, _, err = self.fetch(self.line("etcd", "/etcd.tar.gz", "etcd-v4/etcd"))
        self.assertEqual(code, 1)
        self.assertIn("there is no file etcd-v4/etcd in it", err)

    def test_a_line_that_is_none_is_refused_with_its_number(self) -> None:
        code, _, err = self.fetch("kubectl linux/amd64 abc http://somewhere\n")
        self.assertEqual(code, 1)
        self.assertIn("line 3: ", err)


class ThePins(unittest.TestCase):
    """The project's own list, which may be empty."""

    pins = fetch_released.read((CONTROL_PLANE / "released.txt").read_text())
    go_mod = (CONTROL_PLANE / "go.mod").read_text()

    def test_each_is_of_the_version_that_would_be_built(self) -> None:
        for pin in self.pins:
            module = MODULES[pin.program]
            (version,) = re.findall(rf"\t{re.escape(module)} (v\S+)", self.go_mod)
            self.assertIn(version, pin.url, pin.program)

    def test_each_program_of_the_control_plane_can_be_pinned(self) -> None:
        tools = re.findall(r"^\t(\S+)$", self.go_mod, re.MULTILINE)
        self.assertEqual(len(tools), len(MODULES))
        for module in MODULES.values():
            self.assertTrue(any(tool.startswith(module) for tool in tools), module)


MODULES = {
    **dict.fromkeys(("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"), "k8s.io/kubernetes"),
    "etcd": "go.etcd.io/etcd/server/v3",
    "kwok": "sigs.k8s.io/kwok",
    "aws-iam-authenticator": "sigs.k8s.io/aws-iam-authenticator",
}
