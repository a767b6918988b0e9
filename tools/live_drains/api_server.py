"""GET requests to an API server through `kubectl proxy`, which signs in as kubectl does.

It listens on a Unix socket in a folder that only this user can open, and passes nothing on that changes anything.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from cli import Failed, printable

PATIENCE_S = 20
# As kubectl asks for lists.
PAGE = 500
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
CHANGES = "^(POST|PUT|PATCH|DELETE|CONNECT)$"


class ApiServer:
    def __init__(self, kubectl: list[str], folder: Path) -> None:
        self._socket, self._complaints = folder / "api", folder / "complaints"
        command = [*kubectl, "proxy", f"--unix-socket={self._socket}", f"--reject-methods={CHANGES}"]
        try:
            with self._complaints.open("wb") as complaints:
                self._proxy = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints)
        except FileNotFoundError:
            raise Failed(f"{command[0]} is not on the PATH") from None
        assert self._proxy.stdout is not None
        if not self._proxy.stdout.readline():  # It says where it serves, or ends.
            raise Failed(f"kubectl proxy: {printable(self._complaints.read_text(errors='replace'))}")
        self._threads = threading.local()

    def close(self) -> None:
        self._proxy.kill()
        self._proxy.wait()
        if self._proxy.stdout:
            self._proxy.stdout.close()

    def list(self, path: str, only_metadata: bool = False, **selectors: str) -> list[Any]:
        """Reads all pages of a list."""
        query, items = {"limit": str(PAGE), **selectors}, []
        accept = METADATA if only_metadata else "application/json"
        while True:
            page = self._get(f"{path}?{urlencode(query)}", accept)
            items += page.get("items") or []
            more = page["metadata"].get("continue")
            if not more:
                return items
            query["continue"] = more

    def _get(self, path: str, accept: str) -> Any:
        try:
            connection = self._connection()
            connection.request("GET", path, headers={"Accept": accept})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == 200:
                return json.loads(body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._threads.connection = None
            raise Failed(f"no answer to GET {path.split('?')[0]}: {printable(str(error))}") from None
        raise Failed(f"GET {path.split('?')[0]}: {answer.status} {printable(_message(body))}")

    def _connection(self) -> http.client.HTTPConnection:
        connection = getattr(self._threads, "connection", None)
        if connection is None:
            connection = self._threads.connection = _OverUnixSocket(self._socket)
        return connection


def _message(body: bytes) -> str:
    """Message of a refusal: the API server's Status, or the words of a proxy before it."""
    text = body.decode(errors="replace")
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text


class _OverUnixSocket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
