"""AWS calls that go wrong because a test says so: slow, refused, or cut off."""

import socket
import struct
import time
from dataclasses import dataclass
from threading import Lock

from bed_aws.call import Call
from bed_aws.errors import AwsError, BedError


class Dropped(ConnectionError):
    """The connection was reset: there is nobody left to answer. A ConnectionError, so that the server lets it be."""


@dataclass
class Fault:
    access_key_id: str
    service: str
    action: str
    times: int = -1
    delay_ms: int = 0
    status: int | None = None
    code: str | None = None
    message: str = "made by the test bed"
    reset: bool = False

    def meets(self, call: Call) -> bool:
        return (self.access_key_id, self.service, self.action) == (call.access_key_id, call.service, call.action)

    def strike(self, call: Call) -> None:
        # The delay is the fault: nothing is waited for.
        time.sleep(self.delay_ms / 1000)
        if self.reset:
            _reset(call.request.environ["werkzeug.socket"])
            raise Dropped
        if self.status is not None:
            raise AwsError(self.status, self.code or "InternalFailure", self.message)


class Faults:
    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = Lock()

    def add(self, fault: Fault) -> None:
        if fault.code and fault.status is None:
            raise BedError("a fault with a code needs a status")
        with self._lock:
            self._faults.append(fault)

    def clear(self, access_key_id: str) -> None:
        with self._lock:
            self._faults = [fault for fault in self._faults if fault.access_key_id != access_key_id]

    def strike(self, call: Call) -> None:
        """Lets the first fault that meets this call happen, and counts it."""
        with self._lock:
            fault = next((fault for fault in self._faults if fault.times != 0 and fault.meets(call)), None)
            if fault and fault.times > 0:
                fault.times -= 1
        if fault:
            fault.strike(call)


def _reset(connection: socket.socket) -> None:
    """Lingering for zero seconds makes `close` send RST, as a dead peer's kernel does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # Detached first: a plain close would wait for the server's own readers and writers.
    socket.close(connection.detach())
