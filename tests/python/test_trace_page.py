"""The page of a trace in a real browser: it draws, zooms, tells what is under the pointer, and stays small.

``make test-long`` brings the browser. Otherwise it is looked for on the path, or is what ``HYPERSLAB_CHROMIUM`` names;
where there is none, these tests are skipped with a reason, unless ``HYPERSLAB_BROWSER_REQUIRED=1``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from hyperslab.trace import _page
from hyperslab.trace._form import HEAD, NONE, SPAN, Kind
from hyperslab.trace._run import Run, load, pick

import browser as chromium
from test_trace import record, simulated

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def program() -> str:
    found = chromium.find()
    if found is None:
        reason = "no Chromium on the path, nor named by HYPERSLAB_CHROMIUM; scripts/make-browser DIRECTORY makes one"
        if os.environ.get("HYPERSLAB_BROWSER_REQUIRED") == "1":
            pytest.fail(reason)
        pytest.skip(f"PAGES ARE NOT TESTED: {reason}")
    return found


@pytest.fixture
def page(program: str) -> Iterator[chromium.Browser]:
    with chromium.browser(program) as made:
        yield made
        assert made.errors == []
        assert all(url.startswith(("file:", "data:", "blob:")) for url in made.requests), "a page needs no network"


def show(page: chromium.Browser, run: Run, path: Path, beside: Run | None = None, **options: Any) -> None:
    path.write_text(_page.page(run, beside), encoding="utf-8")
    page.open(path, **options)


def view(page: chromium.Browser) -> dict[str, float]:
    seen: dict[str, float] = json.loads(page.evaluate("JSON.stringify(hyperslabTrace.view)"))
    return seen


def place(page: chromium.Browser, time: float, row: float) -> tuple[float, float]:
    """Where a moment (as a share of what is shown) of a rank is on the screen."""
    box = json.loads(
        page.evaluate(
            "(() => { const of = document.getElementById('timeline').getBoundingClientRect();"
            " return JSON.stringify({ ...hyperslabTrace.box, x: of.left, y: of.top }); })()"
        )
    )
    seen = view(page)
    y = box["y"] + box["top"] + box["height"] * (row - seen["r0"]) / (seen["r1"] - seen["r0"])
    return box["x"] + box["left"] + box["width"] * time, y


def colors(page: chromium.Browser, canvas: str) -> set[str]:
    """Colors of a picture."""
    script = f"""(() => {{
        const of = document.getElementById('{canvas}'), seen = new Set();
        const pixels = of.getContext('2d').getImageData(0, 0, of.width, of.height).data;
        for (let i = 0; i < pixels.length; i += 4)
            seen.add('#' + [0, 1, 2].map((k) => pixels[i + k].toString(16).padStart(2, '0')).join(''));
        return [...seen];
    }})()"""
    return set(page.evaluate(script))


def test_it_draws_tells_and_zooms(page: chromium.Browser, tmp_path: Path) -> None:
    run = record(tmp_path, late=0.2)
    show(page, run, tmp_path / "page.html")
    application, agree, path = "#f0894a", "#b39ddb", "#d6006c"
    assert {application, agree, path} <= colors(page, "timeline")
    assert {application, agree} <= colors(page, "overview")
    assert "the application (thinking)" in page.evaluate("document.getElementById('cause').textContent")
    # Under the pointer: the late rank thinks, while another waits for it.
    segments = run.segments(3)
    thinks = np.flatnonzero(segments.state == Kind.APPLICATION)[0]
    middle = (segments.begin[thinks] + segments.end[thinks]) / 2
    share = (middle - run.begin) / (run.end - run.begin)
    x, y = place(page, share, 3.15)
    page.mouse("mouseMoved", x, y)
    tip = page.evaluate("document.getElementById('tip').textContent")
    assert "3: application, " in tip
    assert "thinking" in tip
    page.mouse("mouseMoved", *place(page, share, 1.15))
    assert "waits for" in page.evaluate("document.getElementById('tip').textContent")
    # The wheel zooms around the pointer, dragging moves, a double click shows all.
    before = view(page)
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-600)
    after = view(page)
    assert 0 < after["t1"] - after["t0"] < 0.6 * (before["t1"] - before["t0"])
    assert (share * before["t1"] - after["t0"]) / (after["t1"] - after["t0"]) == pytest.approx(share, abs=0.02)
    page.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
    page.mouse("mouseMoved", x + 120, y, button="left", buttons=1)
    page.mouse("mouseReleased", x + 120, y, button="left", clickCount=1)
    assert view(page)["t0"] < after["t0"]
    page.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=2)
    page.mouse("mouseReleased", x, y, button="left", clickCount=2)
    assert view(page) == pytest.approx(before)
    # Zooming in ranks.
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-800, modifiers=1)
    assert view(page)["r1"] - view(page)["r0"] < 4
    # Without the mark of the critical path its color is gone.
    page.evaluate("document.getElementById('show-path').click()")
    page.wait_for("hyperslabTrace.stretches === 0")
    assert path not in colors(page, "timeline")


def test_a_call_is_shown_and_predictions_stand_beside(page: chromium.Browser, tmp_path: Path) -> None:
    run = record(tmp_path, late=0.1, strategy="server-directed")
    show(page, run, tmp_path / "page.html", simulated(tmp_path / "simulated"), dark=True)
    rows = page.evaluate("[...document.querySelectorAll('#predicted tr')].map((row) => row.textContent)")
    assert any(row.startswith("sync") for row in rows)
    assert page.evaluate("document.getElementById('predicted-part').hidden") is False
    index = next(i for i, call in enumerate(run.calls) if call.what.startswith("write"))
    page.evaluate(f"document.querySelectorAll('#calls tr.link')[{index}].click()")
    page.wait_for("hyperslabTrace.view.t0 > 0")
    shown = (view(page)["t1"] - view(page)["t0"]) * page.evaluate("hyperslabTrace.data.tick")
    assert shown == pytest.approx(run.calls[index].seconds, rel=0.01)
    page.evaluate("document.getElementById('show-messages').click()")
    assert page.evaluate("hyperslabTrace.data.messages.length") > 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(23, 25, 28)"


def many(directory: Path, ranks: int, steps: int) -> Run:
    """A trace of many ranks as a simulation writes it: each with `steps` messages and waits of random lengths."""
    directory.mkdir()
    random = np.random.default_rng(7)
    with (directory / "many.trace").open("wb") as file:
        for rank in range(ranks):
            lengths = random.exponential(1e6, steps).astype(np.int64) + 1
            end = np.cumsum(lengths) + int(random.integers(0, 10**7))
            spans = np.zeros(2 * steps + 1, SPAN)
            for name in ("step", "after", "peer", "object"):
                spans[name] = NONE
            kinds = random.choice([Kind.SEND, Kind.WRITE, Kind.SYNC, Kind.PACK, Kind.READ], steps)
            for half, kind in ((slice(0, steps), kinds), (slice(steps, 2 * steps), Kind.WAIT)):
                spans["begin"][half], spans["end"][half] = end - lengths, end
                spans["kind"][half], spans["of"][half] = kind, kinds
                spans["step"][half] = np.arange(steps)
            spans["peer"][:-1][np.tile(kinds == Kind.SEND, 2)] = (rank + 1) % ranks
            spans[-1]["begin"], spans[-1]["end"] = end[-1], 10**7 + 10**6 * steps * 2
            spans[-1]["kind"] = spans[-1]["of"] = Kind.AGREE
            spans[-1]["round"] = 1
            head = {
                "run": "many", "simulated": True, "host": "0", "rank": rank, "size": ranks, "clients": ranks,
                "call": 1, "what": "write of 'rho'", "begin_ns": 0, "end_ns": int(spans[-1]["end"]), "span_ns": 0.0,
                "dropped": 0, "objects": [],
            }  # fmt: skip
            told = json.dumps(head).encode()
            told += b" " * (-len(told) % 8)
            file.write(HEAD.pack(b"hsTRACE1", len(told), SPAN.itemsize, len(spans)) + told + spans.tobytes())
    return pick(load(directory), None)


def test_ten_thousand_ranks_fit_on_a_page(page: chromium.Browser, tmp_path: Path) -> None:
    """With states that no preview can foresee, the worst case for squeezing."""
    run = many(tmp_path / "trace", 10_000, 100)
    assert run.count == 10_000 * 201
    path = tmp_path / "page.html"
    show(page, run, path)
    assert path.stat().st_size < 20_000_000
    assert page.evaluate("hyperslabTrace.group") > 1
    x, y = place(page, 0.2, 5000)
    page.mouse("mouseMoved", x, y)
    assert "mostly" in page.evaluate("document.getElementById('tip').textContent")
    for _ in range(8):
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-700, modifiers=1)
    assert page.evaluate("hyperslabTrace.group") == 1
    assert view(page)["r1"] - view(page)["r0"] < 10
    drawn = page.evaluate(
        "(() => { const begin = performance.now(); for (let i = 0; i < 10; i++) draw();"
        " return (performance.now() - begin) / 10; })()"
    )
    assert drawn < 200, "a picture is drawn in time to follow the hand [ms]"


def test_a_simulation_of_thousands_of_ranks_is_shown(page: chromium.Browser, tmp_path: Path) -> None:
    array = {"shape": (4000, 64, 64), "mesh": (4000, 1, 1), "dims": ("block", "*", "*")}
    stages = [{"open": {}}, {"transfer": {"write": True, "arrays": [array], "sync": True}}, {"close": {}}]
    hs.simulate("orion-like", stages, clients=4000, trace=tmp_path / "trace")
    run = pick(load(tmp_path / "trace"), None)
    assert len(run.ranks) == 4000
    show(page, run, tmp_path / "page.html")
    assert page.evaluate("hyperslabTrace.stretches") > 0
    assert "4,000 ranks" in page.evaluate("document.getElementById('facts').textContent")
