"""AWS calls that go wrong because a test says so: slow or refused."""

import time
from dataclasses import dataclass
from threading import Lock

from bed_aws.call import Call
from bed_aws.errors import AwsError


@dataclass(frozen=True)
class Fault:
    access_key_id: str
    service: str
    action: str
    delay_ms: int = 0
    status: int | None = None
    code: str = "InternalFailure"
    message: str = "made by the test bed"

    def meets(self, call: Call) -> bool:
        return (self.access_key_id, self.service, self.action) == (call.access_key_id, call.service, call.action)


class Faults:
    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = Lock()

    def add(self, fault: Fault) -> None:
        with self._lock:
            self._faults.append(fault)

    def clear(self, access_key_id: str) -> None:
        with self._lock:
            self._faults = [fault for fault in self._faults if fault.access_key_id != access_key_id]

    def strike(self, call: Call) -> None:
        """Lets the first fault that meets this call happen."""
        with self._lock:
            fault = next((fault for fault in self._faults if fault.meets(call)), None)
        if fault is None:
            return
        # The delay is the fault: nothing is waited for.
        time.sleep(fault.delay_ms / 1000)
        if fault.status is not None:
            raise AwsError(fault.status, fault.code, fault.message)
