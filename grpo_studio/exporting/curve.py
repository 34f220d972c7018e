"""A metric by step as a picture: a small SVG file, drawn without any library. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 720, 280
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 34, 40
TICKS = 4
INK, GRID, LINE, FAINT = "#3a3f47", "#d9dde3", "#2563eb", "#93b4f5"
SMOOTHED_OVER = 20
"""A line of more points gets a mean over a twentieth of them as a second one; the data itself stays as it is."""

Point = tuple[int, float]


def svg(points: Sequence[Point], title: str) -> str:
    """The curve through finite points (step, value) in order of their steps; needs at least one.

    The picture has its own background, so that it can be read on a dark page.
    """
    low, high = _range([value for _, value in points])
    first, last = points[0][0], max(points[-1][0], points[0][0] + 1)

    def place(step: float, value: float) -> tuple[float, float]:
        across = LEFT + (step - first) / (last - first) * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" font-family="sans-serif" font-size="12" fill="{INK}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
    ]
    for number in range(TICKS + 1):
        value = low + (high - low) * number / TICKS
        y = place(first, value)[1]
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{GRID}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    for step in sorted({first, (first + points[-1][0]) // 2, points[-1][0]}):
        x = place(step, low)[0]
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{step:,}</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">step</text>')
    mean = smoothed(points)
    parts.append(_line([place(*point) for point in points], FAINT if mean else LINE, 1.5))
    if mean:
        parts.append(_line([place(*point) for point in mean], LINE, 2.5))
    return "\n".join([*parts, "</svg>", ""])


def smoothed(points: Sequence[Point]) -> list[Point]:
    """A centred mean over a twentieth of the points; empty where there are too few for one."""
    half = len(points) // SMOOTHED_OVER // 2
    if half < 1:
        return []
    values = [value for _, value in points]
    windows = (values[max(0, place - half) : place + half + 1] for place in range(len(values)))
    return [(step, sum(window) / len(window)) for (step, _), window in zip(points, windows, strict=True)]


def milestones(points: Sequence[Point]) -> list[Point]:
    """The first point, those nearest to a quarter and a half of the way, and the last; each once."""
    last = len(points) - 1
    return [points[place] for place in dict.fromkeys([0, last // 4, last // 2, last])] if points else []


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if high - low < 1e-9 * max(1.0, abs(high)):
        room = max(0.5, abs(high) / 2)
        return low - room, high + room
    return low - (high - low) * 0.05, high + (high - low) * 0.05


def _line(places: Sequence[tuple[float, float]], colour: str, width: float) -> str:
    if len(places) == 1:
        return f'<circle cx="{places[0][0]:.1f}" cy="{places[0][1]:.1f}" r="3" fill="{colour}"/>'
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'
