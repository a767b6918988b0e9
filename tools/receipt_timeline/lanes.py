"""The rows above the pods: the whole window, the axis, the hook, the invocations, how many pods were left when."""

from __future__ import annotations

from datetime import datetime
from xml.etree.ElementTree import Element

from cli import counted

from .bars import MIDDLE, line, mark, picture, span, upright
from .drain import MOST_HEARTBEATS, Drain, Invocation
from .markup import append, element, percent
from .scale import Scale
from .words import clock, duration, moment, tick

# The curve's own units, drawn over the whole width and height of its picture.
CURVE = 1000
STEP_WORDS = {
    "begun": "begun",
    "described": "EC2 answered",
    "found-by-node": "found by its node, without EC2",
    "claimed": "node cordoned",
    "drained": "drain over",
    "completed": "hook completed",
    "handed-on": "continued later",
}
HOOK_MARKS = {"completed": "done", "failed": "lost", "held": "handed-on"}
# Nearer to the edge than this share, in per cent, a label stands beside its mark.
EDGE = 4
# More invocations than these share a row.
MOST_ROWS = 6


def row(name: Element, drawn: Element, text: str | None = None, class_: str = "") -> Element:
    return element("div", name, drawn, note(text), class_=f"row {class_}".strip())


def note(text: str | None) -> Element | None:
    return element("p", element("span", text)) if text else None


def lane(name: str, drawn: Element, text: str | None = None) -> Element:
    return row(element("div", name, class_="name"), drawn, text, "lane")


def window(drain: Drain, scale: Scale, part: Scale) -> Element:
    """The whole time there was, when we worked in it, and which part of it the rows below are drawn in."""
    limit, end = drain.limit_ms, drain.window_ms
    drawn = picture()
    if end is not None:
        append(drawn, span(scale, 0, end, "window", y=3, height=12))
    for each in drain.invocations:
        append(drawn, span(scale, each.from_ms, each.to_ms, "used", y=3, height=12))
    if not drain.announced_ms:
        append(drawn, mark(scale, 0, "notice"))
    if limit is not None:
        append(drawn, upright(scale, limit, "limit"))
    enlargement = None if part == scale else _enlargement(scale, part)
    words = note(_window_in_words(drain))
    return element("div", element("div", "Window", class_="name"), words, drawn, enlargement, class_="row lane")


def _window_in_words(drain: Drain) -> str:
    limit, drained = drain.limit_ms, drain.drained_ms
    if limit is None:
        open_ended = "a hook holds the instance" if drain.hook else "the instance goes at no stated time"
        if drain.window is None:
            return open_ended
        whose = "the last invocation" if len(drain.invocations) > 1 else "the invocation"
        return f"{open_ended}; {whose} could work until {moment(drain.window.end_ms)}"
    ends = f"{limit_in_words(drain)} {duration(limit)} after {drain.zero}"
    if drained is None:
        return ends
    left_ms = limit - drained
    return f"{ends}; {duration(left_ms)} of it were left" if left_ms > 0 else f"{ends}; the drain took all of it"


def limit_in_words(drain: Drain) -> str:
    return "the instance goes" if drain.deadline_ms is not None else "the longest wait is over"


def _enlargement(whole: Scale, part: Scale) -> Element:
    edges = ((part.from_ms, "0%"), (part.to_ms, "100%"))
    return picture(*(element("line", x1=percent(whole.at(edge)), x2=place, y1="0%", y2="100%") for edge, place in edges), class_="enlargement")


def axis(scale: Scale, zero: str, time: datetime | None) -> Element:
    """Times since what counts as zero, and, if that is one moment, of day."""
    drawn, step = picture(class_="axis"), scale.step()
    for at in scale.ticks():
        # In the middle of its mark a label would be cut at the edges.
        anchor = "start" if scale.at(at) < EDGE else "end" if scale.at(at) > 100 - EDGE else "middle"
        place = {"x": percent(scale.at(at)), "text_anchor": anchor}
        append(drawn, element("text", tick(at, step), class_="since", y=12, **place))
        if time and step >= 1000:
            append(drawn, element("text", clock(time, at), class_="clock", y=25, **place))
    of_day = (element("br"), "UTC") if time else ()
    return row(element("div", f"since {zero}", *of_day, class_="name"), drawn, class_="axis")


def lines(drain: Drain, scale: Scale) -> Element:
    drawn = picture(class_="lines")
    for at in scale.ticks():
        append(drawn, upright(scale, at, "tick"))
    claimed, drained, limit = drain.step_ms("claimed"), drain.drained_ms, drain.limit_ms
    margin_ms = drain.window.margin_s * 1000 if drain.window else 0
    if limit is not None and scale.shows(limit):
        append(drawn, span(scale, limit - margin_ms, limit, "margin", y=0, height="100%"))
    for at, name in ((claimed, "claimed"), (drained, "drained"), (limit, "limit")):
        if at is not None and scale.shows(at):
            append(drawn, upright(scale, at, name))
    return drawn


def hook(drain: Drain, scale: Scale) -> Element | None:
    """The lifecycle hook, from the notice to its answer, and its heartbeats."""
    if drain.hook is None:
        return None
    completed = drain.step_ms("completed")
    ended = completed if completed is not None else drain.invocations[-1].to_ms
    drawn = picture(line(scale, 0, ended, "hook"))
    for at in drain.hook.heartbeats_ms:
        append(drawn, upright(scale, at, "heartbeat", MIDDLE - 5, MIDDLE + 5))
    append(drawn, mark(scale, ended, HOOK_MARKS.get(drain.hook.state, "stayed")))
    return lane(f"Hook {drain.hook.name}", drawn, " · ".join([hook_in_words(drain), *_heartbeats(drain)]))


def hook_in_words(drain: Drain) -> str:
    assert drain.hook
    result = drain.hook.result or "an answer"
    state = {
        "left": "not touched by this drain",
        "held": "held for a later invocation",
        "completed": f"completed with {result}",
        "already-over": "nobody waited for it any more",
        "failed": f"completing it with {result} failed",
    }.get(drain.hook.state, drain.hook.state)
    return f"group {drain.hook.group}: {state}"


def _heartbeats(drain: Drain) -> list[str]:
    beats = drain.hook.heartbeats_ms if drain.hook else ()
    if not beats:
        return []
    is_cut = any(receipt.hook and len(receipt.hook.heartbeats_ms) >= MOST_HEARTBEATS for receipt in drain.receipts)
    cut = f", of each invocation the first {MOST_HEARTBEATS}" if is_cut else ""
    return [f"{counted(len(beats), 'heartbeat')}{cut}{', the last' if len(beats) > 1 else ''} at {moment(beats[-1])}"]


def invocations(drain: Drain, scale: Scale) -> list[Element]:
    """A row for each invocation; a drain of two days has 193 of them, and they get one."""
    if len(drain.invocations) > MOST_ROWS:
        drawn = picture(*(span(scale, each.from_ms, each.to_ms, "invocation") for each in drain.invocations))
        unknown = sum(each.ending is None for each in drain.invocations)
        without = f"; {counted(unknown, 'receipt')} not in the file" if unknown else ""
        return [lane("Invocations", drawn, f"{len(drain.invocations)}, the last: {drain.ending}{without}")]
    many = len(drain.invocations) > 1
    return [_invocation(each, f"Invocation {number}" if many else "Invocation", scale) for number, each in enumerate(drain.invocations, 1)]


def _invocation(invocation: Invocation, name: str, scale: Scale) -> Element:
    drawn = picture(span(scale, invocation.from_ms, invocation.to_ms, "invocation"))
    for step in invocation.steps:
        append(drawn, upright(scale, step.at_ms, "step", MIDDLE - 6, MIDDLE + 6))
    if invocation.ending is None:
        fates = ", ".join(f"{number} {fate}" for fate, number in sorted(invocation.pods.items()))
        said = f"from {moment(invocation.from_ms)} to {moment(invocation.to_ms)} · pods: {fates or 'none'} · "
        return lane(name, drawn, f"{said}its own receipt is not in the file: request id {invocation.request_id}")
    steps = [f"{STEP_WORDS.get(step.step, step.step)} at {moment(step.at_ms)}" for step in invocation.steps]
    return lane(name, drawn, " · ".join([*steps, invocation.ending] if invocation.ending != "continued" else steps))


def left_when(drain: Drain, scale: Scale) -> Element:
    leaving = drain.leaving
    gone = sorted(pod.gone_ms for pod in leaving if pod.gone_ms is not None)
    claimed = drain.step_ms("claimed") or 0
    here = len(leaving) - len(gone)
    drawn = curve([(claimed, len(leaving)), *((at, -1) for at in gone)], drain.over_ms, scale)
    half = gone[len(leaving) // 2] if len(gone) > len(leaving) // 2 else None
    said = "" if half is None else f", half of them gone by {moment(half)}"
    last = f", the last at {moment(gone[-1])}" if gone and not here else f", {here} left at the end" if here else ""
    return lane("Pods still there", drawn, f"{len(leaving)} had to leave{said}{last}")


def curve(changes: list[tuple[int, int]], ended_ms: int, scale: Scale) -> Element:
    number, heights = 0, []
    for at, change in sorted(changes):
        heights += [(at, number), (at, number + change)]
        number += change
    heights.append((ended_ms, number))
    most = max(height for _, height in heights) or 1
    places = [(scale.at(at) / 100 * CURVE, CURVE * (1 - height / most)) for at, height in heights]
    outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*places, (places[-1][0], CURVE), (places[0][0], CURVE)])
    drawn = element("polygon", class_="curve", points=outline)
    return element("svg", drawn, class_="bar tall", role="img", viewBox=f"0 0 {CURVE} {CURVE}", preserveAspectRatio="none")
