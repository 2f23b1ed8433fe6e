"""Recordings with known figures."""

import csv
from pathlib import Path

import numpy

from loadtests.recording.outcome import OK
from loadtests.recording.reading import Recording
from loadtests.recording.rows import JOB, Request, Sample

START = 1_700_000_000.0
STATUS = {"success": 200, "wrong response": 200, "no response": 0, "404": 404, "4xx": 400, "504": 504, "5xx": 500}


def request(due, milliseconds, name="lookup", outcome=OK, rows=10, size=1000, late=0.0):
    """A request that was due `due` seconds after the start and took `milliseconds` from then; `late` is in seconds."""
    begin, end = START + due + late, START + due + milliseconds / 1000
    detail = "" if outcome == OK else f"details of <{outcome}>"
    return Request(
        START + due, begin, end, "ReconstructionJob", name, "GET", STATUS[outcome], outcome, rows, size, detail
    )


def job(due, milliseconds, outcome=OK, calls=1):
    """The row of a whole job."""
    return Request(
        START + due, START + due, START + due + milliseconds / 1000, "ReconstructionJob", "ReconstructionJob", JOB, 0, outcome,
        calls, 0, "",
    )  # fmt: skip


def samples(seconds, cpu=0.41, lag=8.0):
    """The samples of the generator, one for each second."""
    return [Sample(START + second + 1, cpu, lag, 10, 3) for second in range(seconds)]


def written(directory: Path, requests, of_generator=()) -> Path:
    """Write the files of a recording as locust does, and return their directory."""
    directory.mkdir(parents=True)
    for name, fields, rows in (
        ("requests", Request._fields, requests),
        ("generator", Sample._fields, of_generator),
    ):
        with (directory / f"{name}-host-1.csv").open("w", newline="") as file:
            csv.writer(file).writerows([fields, *rows])
    return directory


def read(directory: Path, requests, of_generator=()) -> Recording:
    """Write a recording and read it."""
    return Recording.read(written(directory, requests, of_generator))


def steady(seed, factor=1.0, seconds=60, rate=100):
    """Requests at a constant rate with log-normal response times and a median of 10 ms times `factor`."""
    drawn = numpy.random.default_rng(seed).lognormal(numpy.log(10), 0.5, seconds * rate) * factor
    return [request(place / rate, time) for place, time in enumerate(drawn.tolist())]
