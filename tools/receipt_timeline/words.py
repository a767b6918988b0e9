"""Durations, times and lists as people write them. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta


def duration(ms: int) -> str:
    """A length of time, as exact as its size needs."""
    sign, ms = ("-" if ms < 0 else ""), abs(ms)
    if ms < 1000:
        return f"{sign}{ms / 1000:.2f} s"
    if ms < 100_000 and ms % 60_000:
        return f"{sign}{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    minutes, hours = seconds // 60, seconds // 3600
    if minutes < 60:
        return sign + _of_two(minutes, "min", seconds % 60, "s")
    if hours < 48:
        return sign + _of_two(hours, "h", minutes % 60, "min")
    return sign + _of_two(hours // 24, "days", hours % 24, "h")


def moment(ms: int) -> str:
    return duration(ms) if abs(ms) < 3_600_000 else _hours(ms // 1000)


def tick(ms: int, step: int) -> str:
    """A mark of the axis, no more exact than the distance to the next."""
    if step < 1000:
        return f"{ms / 1000:.{2 if step < 100 else 1}f} s"
    seconds, minutes = ms // 1000, ms // 60_000
    if step < 60_000:
        if abs(seconds) < 300:
            return f"{seconds} s"
        return _hours(seconds) if minutes >= 60 else f"{minutes}:{seconds % 60:02} min"
    return f"{minutes} min" if step % 3_600_000 or minutes % 60 else f"{minutes // 60} h"


def _hours(seconds: int) -> str:
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} h"


def clock(time: datetime, ms: int, digits: int = 0) -> str:
    at = time + timedelta(milliseconds=ms)
    fraction = f".{at.microsecond // 1000:03}"[: digits + 1] if digits else ""
    return f"{at:%H:%M:%S}{fraction}"


def day_and_clock(time: datetime, ms: int = 0) -> str:
    return f"{time + timedelta(milliseconds=ms):%Y-%m-%d %H:%M:%S} UTC"


def listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _of_two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"
