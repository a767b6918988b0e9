"""The shapes that say how something ended, so that no end is told by its colour alone."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from .markup import element

# Paths around 0, 0: filled ones, and those that are drawn as lines.
FILLED = {
    "clean": "M-4.5,0a4.5,4.5 0 1 0 9,0a4.5,4.5 0 1 0 -9,0Z",
    "clamped": "M-5.5,5H5.5L0,-5Z",
    "forced": "M0,-6.5L6.5,0L0,6.5L-6.5,0Z",
    "notice": "M-4,-6L5,0L-4,6Z",
}
DRAWN = {
    "lost": "M-5,-5L5,5M5,-5L-5,5",
    "unconfirmed": "M-3.5,-3A3.5,3.5 0 1 1 0,0.5V2.5M0,6V6.5",
    "remaining": "M-4,-5L3,0L-4,5",
    "handed-on": "M-4,-5L3,0L-4,5",
    "stayed": "M-5,0H5",
    "returned": "M-5,0H5M-1,-4L-5,0L-1,4",
    "would-leave": "M-5,0H5M1,-4L5,0L1,4",
    "would-be-blocked": "M-3,-5V5M3,-5V5",
    "done": "M-5,0L-1.5,4L5,-4",
}


def shapes() -> Element:
    filled = [element("g", element("path", d=path), id=f"mark-{name}") for name, path in FILLED.items()]
    drawn = [
        element("g", element("circle", class_="halo", r=8), element("path", d=path, class_="stroke"), id=f"mark-{name}")
        for name, path in DRAWN.items()
    ]
    stripe = element("line", class_="stripe", y2=5)
    turned = {"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    hatch = element("pattern", stripe, id="hatch", width=5, height=5, **turned)
    return element("svg", element("defs", hatch, *filled, *drawn), class_="shapes", aria_hidden="true")


def symbol(name: str) -> Element:
    return element("svg", use(name), class_=f"symbol {name}", viewBox="-8 -8 16 16", aria_hidden="true")


def use(name: str) -> Element:
    return element("use", href=f"#mark-{name}")
