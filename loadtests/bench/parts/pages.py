"""The web pages in Chromium: the times of timelines and of every page, and lookups beside people who use pages.

The first lanes are timed from the navigation to the page until they are drawn. A zoom ends when all visible lanes are drawn
again. Each load has another width, so that no lane is cached. Service and browser share the cores. For the
lookups, a program sends the requests of browsers, because those of people would not use the cores of the service. The service
is that of `make serve`, whose lookups have a pool of their own.
"""

import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import requests
from playwright.sync_api import Page, sync_playwright

from loadtests.bench.harness import Harness
from loadtests.reporting.figures import ratio, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, ServiceError, running

TITLE = "Web pages"
BROWSER = "chromium-headless-shell"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
TIMEOUT_SECONDS = 120
FIRST, ALL, ZOOM = "timeline: first lanes", "timeline: all visible lanes", "zoom"
# Loads of a timeline, zooms after each, and loads of every other page.
LOADS, ZOOMS, VISITS = 5, 4, 3
# A person does something every few seconds.
PEOPLE, PAUSE_SECONDS = 5, 4
LANES_AT_ONCE, VISIBLE = 6, 24
WIDTH = 1280
# Measured in the page, because the driver of the browser adds some 30 ms.
ZOOM_IN = """async () => {
    const section = document.querySelector(".timeline"), before = section.dataset.loads, begin = performance.now();
    document.querySelector("[data-left='0.25']").click();
    while (section.dataset.loads === before) await new Promise(requestAnimationFrame);
    return (performance.now() - begin) / 1000;
}"""
OTHERS = {
    "home": "/",
    "lookup": "/?tag={tag}&major=1000",
    "tags": "/tags",
    "payload list": "/tags/{tag}/lists/{type}",
    "why": "/tags/{tag}/why?type={type}&at=1000,0",
    "history": "/tags/{tag}/history",
    "change": "/tags/{tag}/history/1",
    "coverage": "/tags/{tag}/coverage",
    "coverage of one type": "/tags/{tag}/coverage?type={type}",
    "compare with itself": "/compare?a={tag}&b={tag}",
    "payload": "/payloads?value={type}/{tag}/1",
    "insert": "/tags/{tag}/insert",
    "clone or lock": "/tags/{tag}/manage",
}


def measure(harness: Harness, result: Result) -> None:
    """Measure timelines and pages in the browser, then lookups without and with people who use pages."""
    if shutil.which(BROWSER) is None:
        raise ServiceError(f"{BROWSER} is not installed (apt-get install {BROWSER})")
    tag = harness.sizes.largest
    harness.seed(tag)
    with running(harness.settings, command="serve") as service:
        with _browser(service) as page:
            # The first visit compiles templates, and reads the tag from disk.
            _timeline(page, tag)
            for number in range(1, LOADS + 1):
                harness.say(f"pages: timeline of {tag}, {number} of {LOADS}")
                # The service caches lanes of a width.
                page.goto("about:blank")
                page.set_viewport_size({"width": WIDTH + number, "height": 800})
                result.raw += [{"what": what, "seconds": seconds} for what, seconds in _timeline(page, tag)]
            payload_type = page.locator(".lane").first.get_attribute("data-type")
            harness.say("pages: the other pages")
            for what, path in OTHERS.items():
                address = path.format(tag=tag, type=payload_type)
                result.raw += [{"what": what, "seconds": _visit(page, address)} for _ in range(VISITS)]
        found = spreads(result.raw, "what", "seconds")
        harness.warm_up(service, tag)

        def use(over: threading.Event) -> None:
            with ThreadPoolExecutor(PEOPLE) as pool:
                list(pool.map(lambda number: _person(service, tag, number, over), range(PEOPLE)))

        what = f"{PEOPLE} people on pages"
        times = [{"what": what, **vars(one)} for what, one in found.items()]
        result.tables.append(Table.of(f"Seconds until it is shown, {tag}", times, "what median low high"))
        alone, beside = harness.lookups_beside(result, service, tag, what, harness.sizes.look_seconds, use)
    worse = ratio(beside["p99_ms"], alone["p99_ms"])
    result.targets += [
        Target("first lanes of a timeline", found[FIRST].median, 1, at_most=True, unit="s"),
        Target("zoom", found[ZOOM].median, 0.2, at_most=True, unit="s"),
        Target("lookups: p99 beside people on pages ÷ without", worse, 2, at_most=True),
    ]


@contextmanager
def _browser(service: Service) -> Iterator[Page]:
    """A tab of a browser without a window, whose addresses are those of the service."""
    with sync_playwright() as playwright:
        running_browser = playwright.chromium.launch(executable_path=shutil.which(BROWSER), args=FLAGS)
        page = running_browser.new_page(base_url=service.host)
        page.set_default_timeout(TIMEOUT_SECONDS * 1000)
        yield page
        running_browser.close()


def _timeline(page: Page, tag: str) -> Iterator[tuple[str, float]]:
    """Open the timeline of a tag and zoom in; what happened, and the seconds it took."""
    begin = time.perf_counter()
    page.goto(f"/tags/{tag}", wait_until="commit")
    page.wait_for_selector(".timeline[data-drawn]", state="attached")
    yield FIRST, time.perf_counter() - begin
    page.wait_for_selector(".timeline[data-loads='1']", state="attached")
    yield ALL, time.perf_counter() - begin
    for _ in range(ZOOMS):
        yield ZOOM, page.evaluate(ZOOM_IN)
        if page.locator(".rows").inner_text():
            raise RuntimeError(f"a zoom failed: {page.locator('.rows').inner_text()}")


def _visit(page: Page, address: str) -> float:
    """Open a page; returns the seconds until it is complete. Raises `RuntimeError` unless its status is 200."""
    begin = time.perf_counter()
    response = page.goto(address)
    seconds = time.perf_counter() - begin
    if response is None or response.status != 200:
        raise RuntimeError(f"{address} responded with {response and response.status}")
    return seconds


def _person(service: Service, tag: str, number: int, over: threading.Event) -> None:
    """Do one thing after the other: open the timeline, zoom in, look up a moment, read a list and the history."""
    with requests.Session() as session, ThreadPoolExecutor(VISIBLE // LANES_AT_ONCE) as pool:

        def get(path: str) -> requests.Response:
            response = session.get(f"{service.host}{path}", headers={"Accept": "text/html"}, timeout=TIMEOUT_SECONDS)
            response.raise_for_status()
            return response

        def lanes(part: str) -> None:
            text = get(f"/tags/{tag}").text
            types = re.findall(r'class="lane" data-type="([^"]+)"', text)[:VISIBLE]
            batches = [types[first : first + LANES_AT_ONCE] for first in range(0, len(types), LANES_AT_ONCE)]
            # Wide screens have the same width, that of the page's content.
            start = f"/tags/{tag}/lanes?{part}type="
            first, *rest = [start + "&type=".join(batch) for batch in batches]
            get(first)
            list(pool.map(get, rest))

        actions: list[Callable[[], Any]] = [
            lambda: lanes(""),
            lambda: lanes("left=0.25&right=0.5&"),
            lambda: get(f"/?tag={tag}&major={1000 + number}"),
            lambda: get(f"/tags/{tag}/history"),
        ]
        over.wait(number * PAUSE_SECONDS / PEOPLE)
        for action in cycle(actions[number % len(actions) :] + actions[: number % len(actions)]):
            if over.is_set():
                return
            action()
            over.wait(PAUSE_SECONDS)
