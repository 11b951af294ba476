# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the code cells of a notebook on all ranks, without a notebook server, and checks the wave that they compute.

    diomp-run -n 4 python3 run_notebook.py NOTEBOOK OUTPUT_FOLDER

Figures are written to OUTPUT_FOLDER/wave.png where the cells show them. Exit status 77: no matplotlib.
"""
import json
import pathlib
import sys

import diomp
import numpy as np

try:
    import matplotlib
except ModuleNotFoundError:
    print("skipped: no matplotlib (package python3-matplotlib)")
    sys.exit(77)

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def reference(names):
    """The same wave on one grid, computed by loops over the whole field; returns the pressure."""
    order, steps, courant = names["order"], names["steps"], names["courant"]
    speed = np.where(np.arange(order)[:, None] < order / 2, courant**2, (courant * 1.3) ** 2) * np.ones(order)
    before, now = np.zeros((order, order)), np.zeros((order, order))
    for step in range(1, steps + 1):
        padded = np.pad(now, 1)
        neighbours = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        before, now = now, 2 * now - before + speed * (neighbours - 4 * now)
        now[names["source_row"], names["source_column"]] += names["ricker"](step)
    return now


def main():
    notebook, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "wave.png"
    if diomp.rank() == 0:
        picture.unlink(missing_ok=True)
    plt.show = lambda: plt.savefig(picture, dpi=100)
    names = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(notebook.read_text())["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)  # noqa: S102
    if diomp.rank() == 0:
        field, wanted = names["field"], reference(names)
        assert np.abs(wanted).max() > 0.01, "the wave has no amplitude"
        np.testing.assert_allclose(field, wanted, atol=1e-9 * np.abs(wanted).max())
        assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 10000
        print(f"wave: all cells ran on {diomp.num_ranks()} ranks, as on one grid; {picture}")


if __name__ == "__main__":
    main()
