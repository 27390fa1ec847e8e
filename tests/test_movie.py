"""Movies: frames collected during a fit, the camera, and the files."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image, ImageSequence

from acctsne import TSNE, plot
from acctsne.movie import Recorder
from acctsne.pictures.movie import camera

Digits = tuple[npt.NDArray[Any], npt.NDArray[Any]]

LABELS = np.arange(60) % 3


@pytest.fixture
def recorder() -> Recorder:
    """Six frames of a map that grows."""
    points = np.random.default_rng(0).normal(size=(60, 2))
    recorder = Recorder(every=5)
    for iteration in range(30):
        recorder(iteration, 3 - iteration / 30, points * 10.0 ** (iteration / 5 - 4))
    return recorder


class CtrlCWhenDropped:
    """Presses Ctrl-C in its destructor, from which nothing that is raised comes out."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("name", ["m.gif", "m.html", "m.mp4", "m.png"])
def test_ctrl_c_that_python_loses(
    recorder: Recorder, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    drawn: list[None] = []
    draw: Any = FigureCanvasAgg.draw

    def interrupted(canvas: FigureCanvasAgg) -> None:
        draw(canvas)
        drawn.append(None)
        if len(drawn) == 1:
            CtrlCWhenDropped()

    monkeypatch.setattr(FigureCanvasAgg, "draw", interrupted)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    points = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(KeyboardInterrupt):
        recorder.write(path) if name != "m.png" else plot.save(points, path)
    assert drawn
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_collects_the_frames_of_a_fit(some_digits: Digits) -> None:
    recorder = Recorder(every=50)
    tsne = TSNE(callback=recorder, callback_every=25, max_iter=250, tol=0).fit(some_digits[0])
    assert len(recorder) == 5
    last = recorder._frames[-1]
    assert last.iteration == 249
    step = np.ptp(tsne.embedding_, axis=0).max() / 65535
    np.testing.assert_allclose(last.positions.points(), tsne.embedding_, atol=step)


def test_camera_sees_everything_and_never_jumps() -> None:
    # A map that grows suddenly, shrinks a little, and grows again.
    radii = np.concatenate([np.full(20, 1e-4), np.geomspace(1e-4, 10, 5), np.linspace(8, 100, 75)])
    seen = camera(radii)
    assert (seen >= radii).all()
    assert (np.diff(seen) >= 0).all()
    steps, their_steps = np.diff(np.log(seen)), np.diff(np.log(radii))
    assert steps.max() < their_steps.max() / 2
    assert seen[0] < 1e-3
    assert seen[-1] == pytest.approx(100, rel=0.01)


def test_gif(recorder: Recorder, tmp_path: Path) -> None:
    recorder.write(tmp_path / "a.gif", LABELS, title="A map")
    with Image.open(tmp_path / "a.gif") as movie:
        frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(movie)]
        durations = [frame.info["duration"] for frame in ImageSequence.Iterator(movie)]
    assert len(frames) == 6
    assert len({frame.tobytes() for frame in frames}) == 6
    assert all((frame[-1, 0] == 255).all() for frame in frames)  # on white
    assert durations[-1] > durations[0]


def test_mp4(recorder: Recorder, tmp_path: Path) -> None:
    recorder.write(tmp_path / "a.mp4", LABELS)
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "a.mp4"))
    assert frames == 5 + 2 * 20  # the last for two seconds
    assert seconds == pytest.approx(frames / 20, abs=0.2)


def test_html(recorder: Recorder, tmp_path: Path) -> None:
    recorder.write(tmp_path / "a.html", title="<script>")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.count("iVBORw0KGgo") == 6  # how every PNG begins in base64
    assert "<title>&lt;script&gt;</title>" in page


def test_three_dimensions(tmp_path: Path) -> None:
    recorder = Recorder(every=1)
    for iteration in range(3):
        recorder(iteration, 1.0, np.random.default_rng(0).normal(size=(60, 3)) * (iteration + 1))
    recorder.write(tmp_path / "a.gif", LABELS)
    with Image.open(tmp_path / "a.gif") as movie:
        assert sum(1 for _ in ImageSequence.Iterator(movie)) == 3


def test_wrong_use(recorder: Recorder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.gif, \.mp4 or \.html; got '.*a\.avi'"):
        recorder.write(tmp_path / "a.avi")
    with pytest.raises(ValueError, match="one entry for each of the 60 points"):
        recorder.write(tmp_path / "a.gif", LABELS[:5])
    with pytest.raises(ValueError, match=r"no frame was collected.*callback_every=10"):
        Recorder().write(tmp_path / "a.gif")
    with pytest.raises(ValueError, match="positive number of iterations; got 0"):
        Recorder(every=0)
    assert not list(tmp_path.iterdir())


def test_missing_encoder_is_named(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'acctsne\[movie\]'"):
        recorder.write(tmp_path / "a.mp4")


def test_a_recorder_of_two_fits(tmp_path: Path) -> None:
    recorder = Recorder(1)
    for n_points in (30, 5):
        recorder(0, 1.0, np.random.default_rng(0).normal(size=(n_points, 2)))
    with pytest.raises(ValueError, match="use one for each fit"):
        recorder.write(tmp_path / "map.gif")
