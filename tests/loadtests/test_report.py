"""A report with sample rows."""

import csv
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from loadtests.reporting import machine, plots
from loadtests.reporting.figures import Spread
from loadtests.reporting.report import Report, markdown_table, write_csv
from loadtests.reporting.result import Result, Table, Target

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def report():
    drawn = [
        plots.lines("Lines & more", {"a": [(1, 2), (10, 3)], "b": [(1, 1)]}, x="n", y="ms", log_x=True, log_y=True),
        plots.lines("Linear", {"a": [(1, 2), (1000, 5)]}, x="n", y="ms", log_x=True, log_y=False),
        plots.bars("Bars", {"<a>": Spread(5, 4, 6), "b": Spread(500, 400, 600)}, x="responses/s"),
        plots.bars("Dots", {"<a>": Spread(5, 4, 6), "b": Spread(500, 400, 600)}, x="responses/s", log_x=True),
    ]
    result = Result(
        "sample",
        "A <part>",
        "What it is.",
        targets=[
            Target("fast", 0.9, 0.8, at_most=False),
            Target("slow", 0.9, 0.8, at_most=True, unit="s"),
            Target("absent", None, 1, at_most=True, note="not there"),
        ],
        tables=[Table("Rows", ("what", "rate"), [("a|b", 1234.5), ("<c>", None)])],
        plots=drawn,
        raw=[{"what": "a", "rate": 1.5}, {"what": "b", "errors": 2}],
    )
    return Report("Bench", Table("Facts", ("", ""), [("cores", "2")]), [result], ["A note."])


class Checker(HTMLParser):
    """A parser that collects tags, text, and references to other files."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.fetched, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in ("meta",):
            self.open.append(tag)
        self.fetched += [value for name, value in attrs if name in ("src", "href") and not value.startswith("#")]

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_bench_page_is_complete_and_self_contained(report):
    checker = Checker()
    checker.feed(report.html())
    assert checker.open == []
    assert checker.fetched == []
    assert checker.seen.count("svg") == 4
    text = " ".join(checker.text)
    for expected in ("A <part>", "Lines & more", "a|b", "<c>", "met", "missed", "not available", "0.900 s"):
        assert expected in text


def test_report_writes_its_files(report, tmp_path):
    path = report.write(tmp_path / "run")
    assert path == tmp_path / "run" / "report.html"
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "plots",
        "report.html",
        "report.md",
        "sample.csv",
        "tables",
    ]
    with (path.parent / "sample.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [
            {"what": "a", "rate": "1.5", "errors": ""},
            {"what": "b", "rate": "", "errors": "2"},
        ]


def test_report_writes_each_plot_as_png_and_svg(report, tmp_path):
    directory = report.write(tmp_path).parent / "plots"
    names = ("1-lines-more", "2-linear", "3-bars", "4-dots")
    expected = [f"sample-{name}.{kind}" for name in names for kind in ("png", "svg")]
    assert sorted(file.name for file in directory.iterdir()) == expected
    for name, plot in zip(names, report.results[0].plots, strict=True):
        assert (directory / f"sample-{name}.png").read_bytes().startswith(PNG)
        root = ElementTree.parse(directory / f"sample-{name}.svg").getroot()  # noqa: S314 -- our own file
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert plot.title in "".join(root.itertext())
        assert f"![{plot.title}](plots/sample-{name}.png)" in report.markdown()


def test_report_markdown_has_tables_of_page(report):
    text = report.markdown()
    assert "| fast | 0.900 | ≥ 0.8 | met |  |" in text
    assert "| slow | 0.900 s | ≤ 0.8 s | missed |  |" in text
    assert "| absent | – | ≤ 1 | not available | not there |" in text
    assert "| a\\|b | 1,234 |" in text
    # Every row of a table has as many columns as its head.
    for block in text.split("\n\n"):
        rows = [line.replace("\\|", "") for line in block.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1, block


@pytest.mark.parametrize("headline", ["", "A sentence"])
def test_report_of_small_run_has_no_verdicts(report, headline):
    small = replace(report, headline=headline, passed=True, too_small="--tiny")
    said = "Not judged: a run with --tiny is too small for verdicts."
    page, text = small.html(), small.markdown()
    assert f'<p class="headline unknown">{headline and headline + ". "}{said}</p>' in page
    assert said in text
    assert not re.search(r'class="[^"]*\b(met|missed)\b|>(met|missed)<', page)
    assert "| fast | 0.900 | ≥ 0.8 | not judged |  |" in text
    assert "| slow | 0.900 s | ≤ 0.8 s | not judged |  |" in text
    assert "| absent | – | ≤ 1 | not available | not there |" in text


def test_rows_of_plots_have_names_from_top_to_bottom(report):
    for plot in report.results[0].plots[2:]:
        [axes] = plot.figure.axes
        assert [text.get_text().strip("<>") for text in axes.get_yticklabels()] == ["a", "b"]
        assert axes.yaxis.get_inverted()


@pytest.mark.parametrize("values", [(14.5, 33.0), (100.0, 112.0), (0.2, 0.29), (1, 2_000_000)])
def test_logarithmic_axis_has_exact_labels(values):
    plot = plots.scaling("x", {"a": list(zip((1, 20), ([value] for value in values), strict=True))}, x="n", y="ms")
    assert plot.svg
    [axes] = plot.figure.axes
    labels = [text.get_text().replace(",", "") for text in axes.get_yticklabels()]
    assert [float(label) for label in labels] == pytest.approx(axes.get_yticks(), rel=1e-6)


def test_equal_rows_give_equal_plots():
    one, two = (plots.lines("x", {"a": [(1, 2), (10, 3)]}, x="n", y="ms") for _ in range(2))
    assert one.svg == two.svg
    assert one.svg.startswith("<svg")


def test_commit_is_unknown_without_repository(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert machine.commit() == "unknown"


def test_write_csv_writes_no_file_without_rows(tmp_path):
    write_csv(tmp_path / "empty.csv", [])
    assert not (tmp_path / "empty.csv").exists()


def test_table_makes_headings_from_keys():
    keys = "what responses_per_s service_cpu_ms p999_ms rows_per_response others_cpu_percent low mean_rate"
    assert Table.of("", [], keys, what="route").columns == (
        "route",
        "responses/s",
        "service CPU ms/response",
        "p99.9 ms",
        "rows per response",
        "others CPU %",
        "minimum s",
        "requests/s",
    )


def test_markdown_cell_joins_lines_of_example():
    table = Table("", ("outcome", "example"), [("5xx", "<html>\n<b>a|b</b>\n")])
    assert markdown_table(table).splitlines()[2:] == ["| 5xx | <html> <b>a\\|b</b> |"]


def test_targets_table_shows_narrowly_missed_value_unrounded():
    result = Result("sample", "Sample", targets=[Target("correct responses", 99.96, 100, at_most=False, unit="%")])
    [row] = Report("Bench", Table("Facts", ("", ""), []), [result]).targets_table.rows
    assert row[1] == "99.96 %"
