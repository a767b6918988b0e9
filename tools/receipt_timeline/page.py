"""The whole document."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from xml.etree.ElementTree import Element

from . import lanes
from .bars import bar, css, is_timed, line, picture, span, story, upright
from .drain import Drain
from .groups import MANY, Group, groups
from .marks import shapes, symbol
from .markup import append, document, element
from .receipt import UNTOUCHED, Pod
from .scale import MINUTE, Scale, enlarged, whole
from .words import clock, counted, day_and_clock, duration, moment

STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
# The page loads nothing and runs nothing, whatever is in it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"

# How an ending looks; every other one is good.
ENDINGS = {"failed": "lost", "continued": "handed-on", "ignored": "stayed"}


def page(drain: Drain) -> str:
    """A drain as HTML."""
    subject = drain.node or drain.instance or "no instance"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{drain.ending}: {subject}"),
        element("style", STYLE),
    )
    legend = _legend(drain) if drain.leaving else None
    parts = (shapes(), _header(drain, subject), _counts(drain), legend, _chart(drain), _footer(drain))
    return document(element("html", head, element("body", *parts), lang="en"))


def _header(drain: Drain, subject: str) -> Element:
    shape = ENDINGS.get(drain.ending, "done")
    ending = element("span", symbol(shape), drain.ending, class_=f"ending {shape}")
    header = element(
        "header",
        element("h1", ending, " ", element("span", subject, class_="subject")),
        element("p", _sentence(drain.reason), class_="reason"),
    )
    if drain.dry_run:
        append(header, element("p", "A dry run: nothing was changed.", class_="dry-run"))
    facts = element("dl")
    for name, value in _facts(drain):
        append(facts, element("div", element("dt", name), element("dd", value)))
    append(header, facts)
    return header


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _facts(drain: Drain) -> list[tuple[str, str]]:
    facts = [
        ("Notice", ", ".join(filter(None, [drain.kind, drain.time and day_and_clock(drain.time)]))),
        ("Node claimed", _moment(drain, drain.step_ms("claimed"))),
        ("Drain over", _moment(drain, drain.drained_ms)),
        ("Instance goes" if drain.deadline_ms is not None else "Longest wait over", _moment(drain, drain.limit_ms)),
        ("Instance", drain.instance),
        ("Node", drain.node),
        ("Cluster", drain.cluster),
        ("Managed by", drain.managed_by),
        ("Decision", drain.decision),
        ("Hook", drain.hook and f"{drain.hook.name}, {lanes.hook_in_words(drain)}"),
    ]
    return [(name, value) for name, value in facts if value]


def _moment(drain: Drain, at_ms: int | None) -> str | None:
    if at_ms is None or drain.time is None:
        return None
    digits = 1 if at_ms % 1000 and at_ms < MINUTE else 0
    is_same_day = (drain.time + timedelta(milliseconds=at_ms)).date() == drain.time.date()
    at = f"{clock(drain.time, at_ms, digits)} UTC" if is_same_day else day_and_clock(drain.time, at_ms)
    return f"{at}, after {duration(at_ms)}"


def _counts(drain: Drain) -> Element:
    """How many pods came to which end, each a way to them."""
    counts = element("nav", class_="counts")
    if not drain.pods:
        append(counts, element("span", "No pod was touched."))
    for group in groups(drain):
        fate = group.pods[0].fate
        words = f"{len(group.pods)} {group.name.lower()}"
        append(counts, element("a", symbol(css(fate)), words, href=f"#{_anchor(group)}", class_=css(fate)))
    return counts


def _chart(drain: Drain) -> Element:
    if drain.time is None:
        return element("main", element("p", "The notice has no time, so that nothing can be drawn.", class_="empty"))
    scale = enlarged(drain)
    chart = element("main", lanes.lines(drain, scale))
    append(chart, element("section", lanes.window(drain, whole(drain), scale), class_="above"))
    append(chart, lanes.axis(drain, scale))
    append(chart, lanes.hook(drain, scale))
    for lane in lanes.invocations(drain, scale):
        append(chart, lane)
    if len(drain.leaving) > MANY:
        append(chart, lanes.left_when(drain, scale))
    for group in groups(drain):
        append(chart, _group(group, drain, scale))
    return chart


def _anchor(group: Group) -> str:
    return group.name.lower().replace(" ", "-").replace(",", "")


def _group(group: Group, drain: Drain, scale: Scale) -> Element:
    heading = [
        symbol(css(group.pods[0].fate)),
        element("strong", group.name),
        element("span", f" {counted(len(group.pods), 'pod')}: {group.meaning}"),
    ]
    rows = [_pod(pod, drain, scale, group.is_folded) for pod in group.pods]
    if group.is_folded:
        return element("details", element("summary", *heading), *rows, id=_anchor(group), class_="group")
    return element("section", element("h2", *heading), *rows, id=_anchor(group), class_="group")


def _pod(pod: Pod, drain: Drain, scale: Scale, is_short: bool) -> Element:
    """A pod's row; a short one has no room for its whole story, which stands in its picture's title."""
    namespace, _, name = pod.name.rpartition("/")
    whose = element("span", f"{namespace}/", class_="namespace") if namespace else None
    gone = f", gone at {moment(pod.gone_ms)}" if is_short and pod.gone_ms is not None else ""
    fate = element("span", f"{pod.fate.value}{gone}", class_=f"fate {css(pod.fate)}")
    named = element("div", element("span", whose, name, class_="pod"), " ", fate, class_="name")
    if pod.fate in UNTOUCHED:
        return element("div", named, element("p", element("span", pod.why or "")), class_="row untouched")
    if is_short:
        return lanes.row(named, bar(pod, drain, scale), class_="short")
    return lanes.row(named, bar(pod, drain, scale), story(pod))


def _legend(drain: Drain) -> Element:
    """What the pictures mean; the shapes at their ends are in the groups' headings."""
    example, leaving = Scale(0, 100), drain.leaving
    are_timed = any(is_timed(pod) for pod in leaving)
    keys = [
        (True, upright(example, 50, "claimed"), "node claimed, drain over"),
        (are_timed, line(example, 5, 95, "waiting"), "waiting for its turn"),
        (are_timed, span(example, 5, 95, "asked", y=3, height=12), "requested, not yet accepted"),
        (any(pod.refusals for pod in leaving), span(example, 5, 95, "blocked", y=3, height=12), "blocked by a budget (PDB)"),
        (are_timed, span(example, 5, 95, "leaving clean"), "accepted, shuts down"),
        (are_timed, span(example, 5, 95, "grace", y=2, height=14), "the grace it was given"),
        (
            any(pod.given_s for pod in leaving),
            span(example, 5, 95, "missing", y=2, height=14),
            "what it asks for beyond",
        ),
        (
            not all(is_timed(pod) for pod in leaving),
            span(example, 5, 95, "unknown clean"),
            "until its end: no more is known",
        ),
        (drain.limit_ms is not None, upright(example, 50, "limit"), lanes.limit_in_words(drain)),
    ]
    legend = element("ul", class_="legend")
    for is_used, drawn, meaning in keys:
        if is_used:
            append(legend, element("li", picture(drawn, class_="key"), meaning))
    return legend


def _footer(drain: Drain) -> Element:
    """What finds the drain in the log."""
    ids = dict.fromkeys(invocation.request_id for invocation in drain.invocations)
    found = element("details", element("summary", "In the log"))
    append(found, element("p", f"Event id {drain.event_id or 'unknown'}, request ids {', '.join(ids)}"))
    for receipt in drain.receipts:
        append(found, element("p", f"{receipt.request_id}: {receipt.ending}: {receipt.reason}"))
    return element("footer", found)
