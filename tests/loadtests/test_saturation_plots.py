"""The plots of the campaign saturation."""

from loadtests.campaigns.sweep import Sweep
from loadtests.reporting import plots
from loadtests.reporting.result import Run

# (rate, ms): some rates were tried more than once.
STEPS = [(50, 10.0), (60, 20.0), (60, 40.0), (60, 300.0), (70, 30.0), (70, 50.0)]


def test_saturation_plot_has_medians_with_whiskers():
    steps = Sweep(("job starts due, 1/s",))
    for rate, took in STEPS:
        steps.add((rate,), Run("step", recording=None), {"p50": took})
    [axes] = steps.scaling("times", "p50", y="ms", log_x=False).figure.axes
    lines = [line for line in axes.get_lines() if line.get_color() == plots.COLOURS[0]]
    corners = {corner for line in lines if line.get_linestyle() == "-" for corner in zip(*line.get_data(), strict=True)}
    points = {
        point for line in lines if line.get_marker() in plots.MARKERS for point in zip(*line.get_data(), strict=True)
    }
    assert points == corners == {(50, 10.0), (60, 40.0), (70, 40.0)}
    ends = [[tuple(end) for end in segment] for one in axes.collections for segment in one.get_segments()]
    assert ends == [[(50, 10.0), (50, 10.0)], [(60, 20.0), (60, 300.0)], [(70, 30.0), (70, 50.0)]]
