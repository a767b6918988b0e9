"""A row for each pod: waiting, requested, accepted, gone, and how long it might take to shut down."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from .drain import Drain
from .marks import use
from .markup import append, element, percent
from .receipt import Fate, Pod
from .scale import Scale
from .words import duration, listed, moment

# A letter's width as a share of the picture on a phone: a budget's name is written where it has room.
LETTER = 2.0
# The middle of a row's picture, in pixels.
MIDDLE = 9


def bar(pod: Pod, drain: Drain, scale: Scale) -> Element:
    claimed = drain.step_ms("claimed") or 0
    ended = pod.gone_ms if pod.gone_ms is not None else drain.over_ms
    drawn = picture(element("title", f"{pod.name}: {story(pod)}"))
    asked = pod.requested_ms if pod.requested_ms is not None else pod.accepted_ms
    if asked is None and pod.fate is Fate.UNCONFIRMED:
        append(drawn, line(scale, claimed, ended, "unsure"))
    elif asked is None:
        append(drawn, span(scale, claimed, ended, f"unknown {css(pod.fate)}"))
    else:
        told = pod.accepted_ms if pod.accepted_ms is not None else ended
        append(drawn, line(scale, claimed, asked, "waiting"))
        append(drawn, span(scale, asked, told, "blocked" if pod.refusals else "asked", y=3, height=12))
        append(drawn, _label(scale, asked, told, pod.blocked_by and f"PDB {pod.blocked_by}"))
        for part in _grace(pod, scale):
            append(drawn, part)
        if pod.accepted_ms is not None:
            known = _known_until(pod, told, ended)
            append(drawn, span(scale, told, known, f"leaving {css(pod.fate)}"))
            if known < ended:
                append(drawn, line(scale, known, ended, "unsure"))
    append(drawn, mark(scale, ended, css(pod.fate)))
    return drawn


def _known_until(pod: Pod, accepted_ms: int, ended_ms: int) -> int:
    """Last moment at which the pod was known to run."""
    if pod.fate is not Fate.UNCONFIRMED:
        return ended_ms
    grace_s = pod.grace_s if pod.given_s is None else pod.given_s
    return min(ended_ms, accepted_ms + (grace_s or 0) * 1000)


def is_timed(pod: Pod) -> bool:
    return pod.requested_ms is not None or pod.accepted_ms is not None


def _grace(pod: Pod, scale: Scale) -> list[Element]:
    if pod.grace_s is None or pod.accepted_ms is None:
        return []
    given_s = pod.grace_s if pod.given_s is None else pod.given_s
    given_ms, asks_ms = pod.accepted_ms + given_s * 1000, pod.accepted_ms + pod.grace_s * 1000
    given = span(scale, pod.accepted_ms, given_ms, "grace", y=2, height=14)
    return [given] if given_s >= pod.grace_s else [given, span(scale, given_ms, asks_ms, "missing", y=2, height=14)]


def _label(scale: Scale, from_ms: int, to_ms: int, text: str | None) -> Element | None:
    if text is None or scale.width(from_ms, to_ms) < (len(text) + 1) * LETTER:
        return None
    return element("text", text, class_="budget", x=percent(scale.at(from_ms)), y=MIDDLE + 4, dx=5)


def story(pod: Pod) -> str:
    parts = [pod.why]
    if pod.requested_ms is not None:
        parts.append(f"requested at {moment(pod.requested_ms)}")
    elif pod.evictions == 0 and pod.gone_ms is not None and not pod.answers:
        parts.append("was leaving already")
    if pod.refusals:
        several = pod.blocked_by is None or ", " in pod.blocked_by
        by = f"budget{'s' * several} {pod.blocked_by}" if pod.blocked_by else "several budgets"
        timed = pod.requested_ms is not None and pod.accepted_ms is not None
        blocked = f"blocked {duration(pod.accepted_ms - pod.requested_ms)} by {by}, refused {pod.refusals}×" if timed else ""
        parts.append(blocked or f"refused {pod.refusals}× by {by}")
    if pod.accepted_ms is not None:
        parts.append(f"accepted at {moment(pod.accepted_ms)}")
    parts.append(_ended(pod))
    # Answers that are neither the usual one nor a budget's.
    usual = ("evicted", "deleted", "gone")
    odd = [f"{name} {count}×" for name, count in sorted(pod.answers.items()) if name not in usual and "blocked" not in name]
    parts.append(f"also answered: {listed(odd)}" if odd else None)
    return " · ".join(part for part in parts if part)


def _ended(pod: Pod) -> str | None:
    gone = f"gone at {moment(pod.gone_ms)}" if pod.gone_ms is not None else ""
    if pod.grace_s is None:
        return gone
    is_clamped = pod.given_s is not None and pod.given_s < pod.grace_s
    if pod.gone_ms is not None and pod.accepted_ms is not None:
        took = f"{gone}, after {duration(pod.gone_ms - pod.accepted_ms)} of {pod.given_s if is_clamped else pod.grace_s} s of grace"
        return f"{took}; it asks for {pod.grace_s} s" if is_clamped else took
    grace = f"given {pod.given_s} of {pod.grace_s} s of grace" if is_clamped else f"{pod.grace_s} s of grace"
    return f"{gone}, {grace}" if gone else grace


def css(fate: Fate) -> str:
    """A fate as a class and in the name of its mark."""
    return fate.value.replace(" ", "-")


def picture(*parts: Element, class_: str = "bar") -> Element:
    return element("svg", *parts, class_=class_, role="img")


def span(scale: Scale, from_ms: float, to_ms: float, class_: str, y: int = 5, height: object = 8) -> Element:
    width = scale.width(from_ms, to_ms)
    return element("rect", class_=class_, x=percent(scale.at(from_ms)), width=percent(width), y=y, height=height)


def line(scale: Scale, from_ms: float, to_ms: float, class_: str) -> Element:
    places = {"x1": percent(scale.at(from_ms)), "x2": percent(scale.at(to_ms))}
    return element("line", class_=class_, y1=MIDDLE, y2=MIDDLE, **places)


def upright(scale: Scale, at_ms: float, class_: str, y1: object = "0%", y2: object = "100%") -> Element:
    place = percent(scale.at(at_ms))
    return element("line", class_=class_, x1=place, x2=place, y1=y1, y2=y2)


def mark(scale: Scale, at_ms: float, name: str) -> Element:
    """A shape at a moment; it keeps its form however wide the picture is."""
    return element("svg", use(name), class_=f"mark {name}", x=percent(scale.at(at_ms)), y=MIDDLE)
