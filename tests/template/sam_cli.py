"""The real SAM CLI for tests: without an account, against a port of this machine that keeps what it is asked."""

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SAM = Path(sys.executable).parent / "sam"


class Recorder(ThreadingHTTPServer):
    """Refuses every call, and remembers who called: nothing is deployed."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Refusal)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Refusal(BaseHTTPRequestHandler):
    server: Recorder

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.asked.append(body)
        answer = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>a test</Message></Error></ErrorResponse>"
        self.send_response(403)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_HEAD = do_POST

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def recorder() -> Iterator[Recorder]:
    with Recorder() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def environment(home: Path, url: str) -> dict[str, str]:
    """Nothing of the caller's own: no profile, no configuration, no other endpoint."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ENDPOINT_URL": url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",
        "SAM_CLI_TELEMETRY": "0",
    }


def installed(root: Path, folder: Path) -> Path:
    """What is needed to deploy, in a folder of its own: SAM writes its answers there."""
    for name in ("template.yaml", "samconfig.toml"):
        shutil.copy(root / name, folder)
    return folder
