"""Draws figures with Matplotlib, which is only needed for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hyperslab.errors import UnsupportedError
from hyperslab.reproduce._study import Figure


def draw(figures: Sequence[Figure], folder: Path, kind: str) -> list[Path]:
    """Draw each figure into a file of its own, `kind` being ``svg`` or ``png``; gives the files.

    Raises
    ------
    UnsupportedError
        When Matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        message = "figures are drawn with Matplotlib, which is not installed\n  hint: pip install matplotlib"
        raise UnsupportedError(message) from error
    # The same figure gives the same file.
    mpl.rcParams["svg.hashsalt"] = "hyperslab"
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for figure in figures:
        canvas = Canvas(figsize=(8, 4.5), layout="constrained")
        axes = canvas.add_subplot()
        if figure.bars:
            places = list(dict.fromkeys(str(x) for points in figure.series.values() for x, _ in points))
            width = 0.8 / max(len(figure.series), 1)
            for number, (name, points) in enumerate(figure.series.items()):
                at = [places.index(str(x)) + (number - (len(figure.series) - 1) / 2) * width for x, _ in points]
                axes.bar(at, [y for _, y in points], width, label=name)
            axes.set_xticks(range(len(places)), places, rotation=45 if len(places) > 8 else 0)
        else:
            for name, points in figure.series.items():
                axes.plot([x for x, _ in points], [y for _, y in points], marker="o", label=name)
        axes.set(title=figure.title, xlabel=figure.x_label, ylabel=figure.y_label)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize="small")
        path = folder / f"{figure.name}.{kind}"
        canvas.savefig(path, metadata={"Date": None} if kind == "svg" else None)
        files.append(path)
    return files
