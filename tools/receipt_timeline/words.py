"""Durations, times and lists as people write them. Pure."""

from __future__ import annotations

from datetime import datetime


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
    seconds = ms // 1000
    return duration(ms) if abs(ms) < 3_600_000 else f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} h"


def day_and_clock(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _of_two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"
