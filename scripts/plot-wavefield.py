#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws what `minimod --out DIR` wrote: DIR/wavefield.png and DIR/seismogram.png."""
import argparse
import json
import pathlib
import sys

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np
except ImportError as missing:
    sys.exit(f"plot-wavefield.py: {missing}; on Debian: apt-get install python3-matplotlib python3-numpy")


def load(folder):
    run = json.loads((folder / "run.json").read_text())
    nx, _, nz = run["grid"]
    wavefield = np.fromfile(folder / "slice.raw", dtype=np.float32)
    if wavefield.size != nx * nz:
        sys.exit(f"plot-wavefield.py: slice.raw has {wavefield.size} values, run.json says {nx} x {nz}")
    traces = np.loadtxt(folder / "seismogram.csv", delimiter=",", skiprows=1, ndmin=2)
    if traces.shape != (run["steps"], len(run["receivers"]) + 1):
        sys.exit(f"plot-wavefield.py: seismogram.csv has the shape {traces.shape}, not that of run.json")
    return run, wavefield.reshape(nx, nz), traces[:, 0], traces[:, 1:]


def title(run):
    nx, ny, nz = run["grid"]
    ranks = run["ranks"]
    return f"{nx} × {ny} × {nz} points, {ranks} rank{'s' if ranks > 1 else ''} ({run['library']})"


def draw_wavefield(run, wavefield, path):
    nx, _, nz = run["grid"]
    dx = run["dx"]
    # The source is far stronger than what it sends out, so the scale follows the bulk of the field.
    limit = np.percentile(np.abs(wavefield), 99.5) or 1.0
    figure, axes = plt.subplots(figsize=(8.5, 8.5 * nz / nx * 0.78 + 1.0), layout="constrained")
    image = axes.imshow(wavefield.T, cmap="seismic", vmin=-limit, vmax=limit, interpolation="bilinear",
                        extent=(0, nx * dx, nz * dx, 0), aspect="equal")
    bounds = np.cumsum([nx // run["ranks"] + (r < nx % run["ranks"]) for r in range(run["ranks"] - 1)])
    for number, bound in enumerate(bounds):
        axes.axvline(bound * dx, color="0.35", linewidth=0.7, linestyle=(0, (6, 5)),
                     label="rank boundary" if number == 0 else None)
    receivers = np.array(run["receivers"], dtype=float)
    at = receivers[::max(1, len(receivers) // 40)] * dx  # enough marks to see the line
    axes.plot(at[:, 0], at[:, 2], "v", color="black", markersize=4, linestyle="none", label="receiver")
    source = np.array(run["source"]) * dx
    axes.plot(source[0], source[2], "*", color="gold", markeredgecolor="black", markersize=14, label="source")
    axes.set(xlabel="x (m)", ylabel="depth z (m)", xlim=(0, nx * dx), ylim=(nz * dx, 0))
    axes.set_title(f"Pressure after {run['steps'] * run['dt']:.3f} s at y = {source[1]:.0f} m\n{title(run)}")
    axes.legend(loc="lower right", framealpha=0.9)
    figure.colorbar(image, ax=axes, label="pressure", shrink=0.9)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_seismogram(run, time, traces, path):
    dx = run["dx"]
    figure, (panel, single) = plt.subplots(1, 2, figsize=(11, 6), width_ratios=(3, 2), sharey=True,
                                           layout="constrained")
    receivers = np.array(run["receivers"])
    order = np.argsort(receivers[:, 0], kind="stable")
    position = receivers[order, 0] * dx
    shown = traces[:, order]
    # A point source fades with distance, so with time: the panel is scaled by t to show late arrivals.
    gained = shown * time[:, None]
    limit = np.percentile(np.abs(gained), 99) or np.abs(gained).max() or 1.0
    # Cell edges half-way between receivers, which need not be evenly spread.
    if len(position) > 1 and np.all(np.diff(position) > 0):
        middle = (position[1:] + position[:-1]) / 2
        edges = np.concatenate(([2 * position[0] - middle[0]], middle, [2 * position[-1] - middle[-1]]))
        label = "receiver position x (m)"
    else:
        edges = np.arange(len(position) + 1) - 0.5
        label = "receiver"
    times = np.concatenate((time, [2 * time[-1] - time[-2] if len(time) > 1 else time[-1] * 2]))
    panel.pcolormesh(edges, times, gained, cmap="seismic", vmin=-limit, vmax=limit, rasterized=True)
    panel.set(xlabel=label, ylabel="time (s)", title=f"{len(position)} receivers, pressure × t")
    panel.invert_yaxis()
    chosen = len(position) // 4
    trace = shown[:, chosen]
    single.plot(trace, time, color="black", linewidth=0.9)
    single.fill_betweenx(time, 0, np.maximum(trace, 0), color="firebrick", alpha=0.7, linewidth=0)
    single.fill_betweenx(time, 0, np.minimum(trace, 0), color="royalblue", alpha=0.7, linewidth=0)
    single.axvline(0, color="0.6", linewidth=0.6)
    single.set(xlabel="pressure", title=f"receiver at x = {position[chosen]:.0f} m")
    single.grid(True, axis="y", color="0.9")
    if label.endswith("(m)"):
        panel.axvline(position[chosen], color="black", linewidth=0.8, linestyle="--")
    figure.suptitle(f"Seismogram, Ricker wavelet of {run['frequency']:.3g} Hz\n{title(run)}")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="what --out named")
    folder = parser.parse_args().folder
    try:
        run, wavefield, time, traces = load(folder)
    except OSError as error:
        sys.exit(f"plot-wavefield.py: {error}; did minimod run with --out {folder}?")
    draw_wavefield(run, wavefield, folder / "wavefield.png")
    draw_seismogram(run, time, traces, folder / "seismogram.png")
    print(f"{folder / 'wavefield.png'}\n{folder / 'seismogram.png'}")


if __name__ == "__main__":
    main()
