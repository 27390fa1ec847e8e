"""Fuzz acctsne: `python tests/fuzz/run.py --minutes 10`; a failure tells its kind and seed."""

import argparse
import sys
from functools import partial
from pathlib import Path
from time import monotonic

from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parent.parent))

from fuzz.cases import KINDS, run_one
from fuzz.files import whole_files
from fuzz.harness import run_case


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--only", action="store_true", help="just the one case, in this process")
    args = parser.parse_args()
    kinds = args.kinds.split(",")
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        parser.error(f"no {', '.join(unknown)}; there are {', '.join(KINDS)}")
    if args.only:
        run_one(kinds[0], args.seed)
        return 0
    whole_files()  # made once, not by the process of every case
    end = monotonic() + 60 * args.minutes
    failures = 0
    counts = dict.fromkeys(kinds, 0)
    bar = tqdm(unit="case")
    seed = args.seed
    while monotonic() < end:
        for kind in kinds:
            outcome = run_case(partial(run_one, kind, seed))
            counts[kind] += 1
            bar.update()
            if not outcome.good:
                failures += 1
                bar.write(f"--kinds {kind} --seed {seed} --only: {outcome.what}")
        seed += 1
    bar.close()
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    print(f"{sum(counts.values())} cases ({told}), {failures} failed; next seed {seed}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
