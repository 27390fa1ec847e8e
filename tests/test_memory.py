"""Too little memory: a sentence before the work begins, or instead of the bare error."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from acctsne import TSNE, Affinities, nearest_neighbors
from acctsne.runtime import memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")

# Says what was raised, and how much memory the process had ever used by then.
CHILD = """
import json, resource, sys
import numpy as np
from acctsne import TSNE, Affinities, nearest_neighbors
X = np.random.default_rng(0).normal(size=({n}, 3)).astype(np.float32)
X.T @ X  # OpenBLAS takes its buffers at its first product, and ends the process if it cannot
mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + {room}, -1))
def peak():  # not ru_maxrss, which a process takes over from the one that started it
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
before = peak()
said = ""
try:
    {call}
except MemoryError as error:
    said = str(error)
grown = peak() - before
print(json.dumps([said, grown]))
"""


def with_room(room: int, n: int, call: str) -> tuple[str, int]:
    code = CHILD.format(n=n, room=room, call=call)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    said, grown = json.loads(done.stdout)
    return said, grown


def test_more_threads_than_there_is_room_for() -> None:
    # 2000 stacks are 16 GB of addresses: fewer threads do the work.
    said, _ = with_room(
        10**9, 500, "TSNE(n_jobs=2000, perplexity=5, max_iter=250, init='random').fit(X)"
    )
    assert not said


@pytest.mark.parametrize(
    ("call", "size"),
    [
        # 20000 x 19999 x (4 + 4 + 4) bytes, and 20000 x 2 x 6 x 4.
        ("TSNE(method='exact', n_jobs=1).fit(X)", "4.8 GB"),
        # 20000 x 12000 x 8 and x 12 bytes.
        ("nearest_neighbors(X, 12000, n_jobs=1)", "1.9 GB"),
        ("Affinities.from_data(X, n_neighbors=12000, dtype=np.float64, n_jobs=1)", "2.9 GB"),
    ],
)
def test_refused_before_the_work_begins(call: str, size: str) -> None:
    # What the call itself maps before it looks (a few megabytes) must not show in "1.0 GB".
    said, grown = with_room(1_030_000_000, 20_000, call)
    assert f"needs at least {size} of memory, and the limit of the address space" in said
    assert "leaves 1.0 GB" in said
    assert grown < 10**8


def test_what_could_not_be_foreseen() -> None:
    # What is needed least would fit, what is needed beside it does not.
    said, _ = with_room(95 * 10**6, 20_000, "TSNE(perplexity=100, n_jobs=1).fit(X)")
    assert "A fit of 20000 samples needs at least 73 MB of memory, and it ran out" in said


def test_the_estimate_is_one_from_below() -> None:
    X = np.random.default_rng(0).normal(size=(10_000, 3)).astype(np.float32)
    for dtype in (np.float32, np.float64):
        tsne = TSNE(perplexity=100, dtype=dtype, n_jobs=1)
        call = (
            f"TSNE(perplexity=100, dtype=np.{dtype.__name__}, n_jobs=1, callback_every=1, "
            "callback=lambda *progress: True).fit(X)"
        )
        said, grown = with_room(10**10, len(X), call)
        assert said == ""
        assert tsne._problem(X).least_memory() <= grown


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the system's files be others."""
    for name in ("proc/self", "cgroup/memory/box", "cgroup/outer/inner"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "cgroup")
    return tmp_path


CALLS = {
    "TSNE": lambda X: TSNE(method="exact").fit(X),
    "Affinities": lambda X: Affinities.from_data(X, n_neighbors=7999),
    "nearest_neighbors": lambda X: nearest_neighbors(X, 7999),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("group", "files", "who"),
    [
        ("0::/outer/inner", {"cgroup/outer/memory.max": "100000000\n"}, "the container"),
        (
            "4:memory:/box",
            {"cgroup/memory/box/memory.limit_in_bytes": "100000000"},
            "the container",
        ),
        ("0::/", {"proc/meminfo": "MemTotal: 90000 kB\nSwapTotal: 1000 kB\n"}, "the machine"),
    ],
)
def test_containers_and_machines(
    limits: Path, group: str, files: dict[str, str], who: str, call: object
) -> None:
    (limits / "proc/self/cgroup").write_text(group + "\n")
    for name, text in files.items():
        (limits / name).write_text(text)
    assert callable(call)
    with pytest.raises(MemoryError, match=f"{who}.* leaves (93|100) MB"):
        call(np.zeros((8000, 1)))


def test_no_limits_are_no_limit(limits: Path) -> None:
    (limits / "proc/self/cgroup").write_text("0::/outer/inner\n1:cpu:/\n")
    (limits / "cgroup/outer/memory.max").write_text("max\n")
    with memory.room_for(10**18, "everything"):
        pass
