"""The page's charts, drawn by Bokeh. Python decides how they look; the page's script fills them with what is selected.

No measurement enters here, so the charts are the same for every report, and no name can do anything but be drawn.
"""

import json
import re
from typing import Any

from bokeh.core.properties import value
from bokeh.embed import json_item
from bokeh.models import (
    ColumnDataSource,
    CustomJS,
    FixedTicker,
    HoverTool,
    Range1d,
    Span,
    TapTool,
)
from bokeh.plotting import figure

INK, SOFT, FAINT = "#1f2933", "#616e7c", "#e4e7eb"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
PASS, FAIL, NOT_JUDGED = "#2b6ca3", "#c2410c", "#8d99a6"
BAR = "#7ba3c9"
# Told apart by colour-blind readers as well (Okabe and Ito); the page cycles through dashes after these.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4B5563")

_BLUES = ("#eff4f9", "#dbe8f3", "#bcd4e8", "#8fb8d8", "#5b94c2", "#2b6ca3")
_ORANGES = ("#fdd0a2", "#fd9a50", "#e5671b", "#a63603")
_GREENS = ("#f3f8f1", "#e0f0db", "#c7e5c3", "#9fd3b5", "#6dbcb4", "#3d9dbd", "#2a79ae", "#1f5790", "#173a68")
_ULPS = {"edges": (0.5, 1, 2, 8, 64, 1e3, 1e6, 1e9), "colours": _GREENS, "dark_from": 5}
SCALES = {
    "bound_used": {
        "label": "share of the allowed error that was used",
        "short": "bound used",
        "edges": (1e-3, 1e-2, 0.1, 0.3, 0.6, 1, 10, 1e3, 1e6),
        "colours": (*_BLUES, *_ORANGES),
        "dark_from": 4,
    },
    "max_row_ulp": {"label": "largest error in ULP of the row's largest output", "short": "max row ULP", **_ULPS},
    "max_ulp": {"label": "largest error in ULP", "short": "max ULP", **_ULPS},
}

_UNFADED = {"nonselection_fill_alpha": 1.0, "nonselection_hatch_alpha": 1.0}  # when another cell is selected
_TOLD = "<b>@where</b><br>@what"  # Bokeh escapes what it puts in the place of a name
_PICK = "trueulp.pick(cb_data.source)"


def items() -> dict[str, Any]:
    """Every chart as Bokeh embeds it, by the ID of the element it belongs in."""
    charts = {"heat": heat_map(), "histogram": histogram(), "condition": by_condition(), "length": by_length()}
    return {name: _fixed_ids(json_item(chart)) for name, chart in charts.items()}


def _fixed_ids(item: Any) -> Any:
    """Bokeh numbers its models through a process; numbered from 1, one chart is the same bytes every time."""
    numbers: dict[str, str] = {}
    text = re.sub(r'"p(\d+)"', lambda m: f'"p{numbers.setdefault(m[1], str(len(numbers) + 1))}"', json.dumps(item))
    return json.loads(text)


def heat_map() -> figure:
    """Implementations by regimes. Cells with a colour, those not judged, those not run, and the marks."""
    chart = _figure("heat", height=400, x_axis_location="above", min_border_right=64)
    chart.xaxis.major_label_orientation = 0.75
    _labelled(chart.xaxis[0])
    _labelled(chart.yaxis[0])
    chart.grid.grid_line_color = None
    cells = _source("heat_cells", "x y colour")
    shape = {"width": 0.92, "height": 0.86, "line_color": None}
    chart.rect("x", "y", source=cells, fill_color="colour", **_UNFADED, **shape)
    grey = _source("heat_grey", "x y")
    hatch = {"fill_color": "#eceff2", "hatch_pattern": "right_diagonal_line", "hatch_color": "#a9b4bf"}
    chart.rect("x", "y", source=grey, hatch_scale=5, hatch_weight=1, **_UNFADED, **hatch, **shape)
    marks = {"text_font_size": "11px", "text_align": "center", "text_baseline": "middle", "text_font": value(FONT)}
    fails = _source("heat_fails", "x y ink")
    chart.text("x", "y", value("✕"), source=fails, text_color="ink", text_font_style="bold", **marks)
    absent = _source("heat_absent", "x y")
    chart.text("x", "y", value("·"), source=absent, text_color="#9aa5b1", **marks)
    _pickable(chart, list(chart.renderers[:2]))
    return chart


def histogram() -> figure:
    """One strip per implementation: how many results had which error."""
    chart = _figure("histogram", height=400, x_axis_label="error in ULP")
    _labelled(chart.xaxis[0])
    _labelled(chart.yaxis[0])
    bars = _source("histogram_bars", "left right bottom top colour")
    drawn = chart.quad("left", "right", "top", "bottom", source=bars, fill_color="colour", line_color=None)
    chart.add_layout(Span(location=-1, dimension="height", line_color=SOFT, line_dash="dotted", line_width=1))
    _hover(chart, [drawn])
    return chart


def by_condition() -> figure:
    """The largest error of every measurement against the condition number there."""
    logs = {"x_axis_type": "log", "y_axis_type": "log"}
    chart = _figure("condition", height=360, x_axis_label="condition number at the largest error", **logs)
    chart.yaxis.axis_label = "largest error in ULP"
    chart.line([1e-30, 1e60], [1e-30, 1e60], line_color=SOFT, line_dash="dashed", line_width=1)
    points = []
    for name, marker, colour in (("not_judged", "square", NOT_JUDGED), ("pass", "circle", PASS), ("fail", "x", FAIL)):
        source = _source(f"condition_{name}", "x y")
        filled = {"fill_color": colour if marker != "x" else None, "fill_alpha": 0.4, "line_color": colour}
        size = {"size": 7 if marker == "x" else 4, "line_alpha": 0.8 if marker == "x" else 0.3}
        points.append(chart.scatter("x", "y", source=source, marker=marker, **filled, **size))
    _pickable(chart, points)
    return chart


def by_length() -> figure:
    """Error against the length of the rows, a line per implementation."""
    logs = {"x_axis_type": "log", "y_axis_type": "log"}
    chart = _figure("length", height=360, x_axis_label="length of the row", **logs)
    lines = _source("length_lines", "xs ys colour dash")
    chart.multi_line("xs", "ys", source=lines, line_color="colour", line_dash="dash", line_width=1.4, line_alpha=0.75)
    points = _source("length_points", "x y colour")
    drawn = chart.scatter("x", "y", source=points, size=4, color="colour")
    _pickable(chart, [drawn])
    return chart


def _figure(name: str, height: int, **options: Any) -> figure:
    ranges = {"x_range": Range1d(0.1, 10), "y_range": Range1d(0.1, 10)}
    chart = figure(
        name=name, height=height, sizing_mode="stretch_width", tools="", toolbar_location=None, **ranges, **options
    )
    chart.outline_line_color = None
    chart.background_fill_color = chart.border_fill_color = None
    chart.grid.grid_line_color = FAINT
    for axis in chart.axis:
        axis.axis_line_color = axis.major_tick_line_color = "#cbd2d9"
        axis.minor_tick_line_color = None
        axis.major_label_text_color, axis.axis_label_text_color = INK, SOFT
        axis.major_label_text_font = axis.axis_label_text_font = FONT
        axis.major_label_text_font_size = axis.axis_label_text_font_size = "12px"
        axis.axis_label_text_font_style = "normal"
    return chart


def _labelled(axis: Any) -> None:
    """An axis whose labels the page's script sets."""
    axis.ticker = FixedTicker(ticks=[])
    axis.axis_line_color = axis.major_tick_line_color = None


def _source(name: str, columns: str) -> ColumnDataSource:
    """An empty source. The pointer reads ``where`` and ``what``; a click leads to the measurement ``row``."""
    return ColumnDataSource({column: [] for column in (*columns.split(), "where", "what", "row")}, name=name)


def _hover(chart: figure, renderers: list[Any]) -> None:
    chart.add_tools(HoverTool(renderers=renderers, tooltips=_TOLD, point_policy="follow_mouse"))


def _pickable(chart: figure, renderers: list[Any]) -> None:
    _hover(chart, renderers)
    chart.add_tools(TapTool(renderers=renderers, callback=CustomJS(code=_PICK)))
