"""Pieces of SVG: escaped text, scales with ticks, numbers as people read them. Colours are classes, which the page's CSS sets."""

import html
import math

SERIES_COLOURS = 10
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "12 4")


def escape(text):
    return html.escape(str(text), quote=True)


def colour(index):
    return f"c{index % SERIES_COLOURS}"


def dash(index):
    pattern = DASHES[(index + index // SERIES_COLOURS) % len(DASHES)]  # other dashes when colours come again
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def short(number):
    """As 1.29 M: three digits."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= limit * 0.9995:
            return f"{_three_digits(number / limit)}{unit}"
    return _three_digits(number)


def _three_digits(number):
    if number == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(number)))) if abs(number) < 100 else 0
    text = f"{number:.{min(digits, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size(number):
    """Bytes, as 53.9 MiB."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number >= 1 << power:
            return f"{_three_digits(number / (1 << power))} {unit}"
    return f"{number:.0f} B"


def micros(number):
    """A time in microseconds, as 12.3 µs or 4 ms."""
    for limit, unit in ((1e6, "s"), (1e3, "ms"), (1, "µs")):
        if number >= limit:
            return f"{_three_digits(number / limit)} {unit}"
    return f"{_three_digits(number * 1000)} ns"


def seconds(number):
    return micros(number * 1e6)


class Linear:
    """From [low, high] to [begin, end] of the picture, with ticks at round numbers. binary: for bytes; whole: for counts."""

    def __init__(self, low, high, begin, end, ticks=5, binary=False, whole=False):
        if high <= low:
            high = low + (abs(low) or 1)
        step = (_round_binary_step if binary else _round_step)((high - low) / ticks)
        if whole:
            step = max(step, 1)
        self.low, self.high = math.floor(low / step) * step, math.ceil(high / step - 1e-9) * step
        self.begin, self.end = begin, end
        count = round((self.high - self.low) / step)
        self.ticks = [self.low + i * step for i in range(count + 1)]

    def __call__(self, value):
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def _round_binary_step(step):
    unit = 1 << (10 * max(0, int(math.log2(max(step, 1)) // 10)))
    return unit * _round_step(step / unit) if step > unit else unit


def _round_step(step):
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if step <= power * factor * 1.0000001)


class Log:
    """… on a logarithmic axis, with ticks at powers of ten. Values at or below 0 go to the beginning."""

    def __init__(self, low, high, begin, end):
        self.low = math.floor(math.log10(low)) if low > 0 else 0
        self.high = max(math.ceil(math.log10(high)), self.low + 1)
        self.begin, self.end = begin, end
        every = max(1, -(-(self.high - self.low) // 7))
        self.ticks = [10.0**power for power in range(self.low, self.high + 1, every)]

    def __call__(self, value):
        power = math.log10(value) if value > 0 else self.low
        return self.begin + (max(power, self.low) - self.low) / (self.high - self.low) * (self.end - self.begin)


class Steps:
    """The given numbers at equal distances, whatever lies between them."""

    def __init__(self, values, begin, end):
        self.ticks = sorted(set(values))
        self.begin, self.end = begin, end

    def __call__(self, value):
        return self.begin + (self.ticks.index(value) + 0.5) / len(self.ticks) * (self.end - self.begin)


class Nines:
    """Shares in [0, 1]: each nine, 0.9, 0.99, 0.999, takes the same room."""

    def __init__(self, nines, begin, end):
        self.nines = nines
        self.begin, self.end = begin, end
        self.ticks = [0, 0.5] + [1 - 10.0**-power for power in range(1, nines + 1)]

    def __call__(self, share):
        power = -math.log10(max(1 - share, 10.0**-self.nines))
        return self.begin + power / self.nines * (self.end - self.begin)


def text(x, y, words, anchor="start", kind="", rotate=None):
    turn = f' transform="rotate({rotate} {x:.1f} {y:.1f})"' if rotate is not None else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}"{turn}>{escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def rectangle(x, y, width, height, kind, title="", radius=0):
    inside = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" rx="{radius}" '
        f'class="{kind}">{inside}</rect>'
    )


def marker(x, y, index, title=""):
    """A shape of its own for each series, for who cannot tell the colours apart."""
    inside = f"<title>{escape(title)}</title>" if title else ""
    shape = index % 4
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="mark {colour(index)}">{inside}</circle>'
    corners = {1: [(-4, -4), (4, -4), (4, 4), (-4, 4)], 2: [(0, -5), (5, 4), (-5, 4)], 3: [(0, -5), (5, 0), (0, 5), (-5, 0)]}[
        shape
    ]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" class="mark {colour(index)}">{inside}</polygon>'


def picture(width, height, title, description, parts, identity):
    """An SVG that says what it shows to who cannot see it."""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="{identity}-t {identity}-d" '
        f'style="max-width:{width}px"><title id="{identity}-t">{escape(title)}</title>'
        f'<desc id="{identity}-d">{escape(description)}</desc>{"".join(parts)}</svg>'
    )
