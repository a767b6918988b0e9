"""Times to places: which stretch of time is drawn, and where in it a moment lies. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .drain import Drain

# Distances between the marks of the axis that a person can count in.
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
STEPS = [
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(SECOND * n for n in (1, 2, 5, 10, 20, 30)),
    *(MINUTE * n for n in (1, 2, 5, 10, 20, 30)),
    *(HOUR * n for n in (1, 2, 3, 6, 12, 24)),
]
# As many labels as a phone has room for.
MOST_TICKS = 6
# The ends of the picture are this share of it away from what is drawn, so that no mark is cut.
PADDING = 0.025
# A drain that took less than this share of its time is drawn larger than that time.
WORTH_ENLARGING = 0.4


@dataclass(frozen=True)
class Scale:
    """A stretch of time, drawn from 0 to 100 per cent."""

    from_ms: float
    to_ms: float

    def at(self, ms: float) -> float:
        return (ms - self.from_ms) / (self.to_ms - self.from_ms) * 100

    def width(self, from_ms: float, to_ms: float) -> float:
        return max(0.0, self.at(to_ms) - self.at(from_ms))

    def moved(self, by_ms: float) -> Scale:
        return Scale(self.from_ms - by_ms, self.to_ms - by_ms)

    def shows(self, ms: float) -> bool:
        return self.from_ms <= ms <= self.to_ms

    def step(self) -> int:
        span = self.to_ms - self.from_ms
        return next((step for step in STEPS if span / step <= MOST_TICKS), STEPS[-1] * (1 + int(span / STEPS[-1] / MOST_TICKS)))

    def ticks(self) -> list[int]:
        step = self.step()
        first = -int(-self.from_ms // step) * step
        return list(range(first, int(self.to_ms) + 1, step))


def whole(drain: Drain) -> Scale:
    moments = _moments(drain)
    return padded(min(moments), max(*moments, drain.window_ms or 0))


def enlarged(drain: Drain) -> Scale:
    moments = _moments(drain)
    from_ms, last, to_ms = min(moments), max(moments), max(*moments, drain.window_ms or 0)
    if last - from_ms < (to_ms - from_ms) * WORTH_ENLARGING:
        to_ms = last
    return padded(from_ms, to_ms)


def padded(from_ms: int, to_ms: int) -> Scale:
    padding = max(to_ms - from_ms, 1) * PADDING
    return Scale(from_ms - padding, to_ms + padding)


def _moments(drain: Drain) -> list[int]:
    pods = [at for pod in drain.pods for at in (pod.requested_ms, pod.accepted_ms, pod.gone_ms) if at is not None]
    heartbeats = drain.hook.heartbeats_ms if drain.hook else ()
    invocations = [at for invocation in drain.invocations for at in (invocation.from_ms, invocation.to_ms)]
    return [0, *pods, *heartbeats, *invocations]
