"""One fit of much data, with its log, the seconds of each step and the peak memory."""

import sys

import numpy as np

from acctsne import TSNE
from common import (
    Disturbance,
    disturbance_note,
    load_or_exit,
    make_parser,
    memory_peak,
    output_folder,
    positive,
    start_memory_peak,
    table,
    write_results,
)


def main() -> int:
    parser = make_parser(__doc__ or "", dataset="synthetic:1000000x20")
    parser.add_argument("--max-iter", type=positive, default=1000, help="iterations")
    args = parser.parse_args()
    dataset = load_or_exit(args)
    folder = output_folder(args, "large", dataset)
    before = start_memory_peak() / 1e9

    model = TSNE(
        perplexity=args.perplexity,
        max_iter=args.max_iter,
        n_jobs=args.threads,
        random_state=args.seed,
        verbose=1,
    )
    with Disturbance() as others:
        positions = model.fit_transform(dataset.X)
    np.save(folder / "embedding.npy", positions)

    peak = memory_peak() / 1e9
    others_than_seconds = ("recall", "iterations")
    rows = [
        [name, f"{value:.1f}"]
        for name, value in model.timings_.items()
        if not name.startswith(others_than_seconds)
    ]
    paragraphs = [
        table(["step", "seconds"], rows),
        f"KL divergence {model.kl_divergence_:.4f} after {model.n_iter_ + 1} iterations; recall of "
        f"the neighbours {model.timings_['recall']:.4f}. Peak memory of the process {peak:.2f} GB; "
        f"{before:.2f} GB, the data among them, were there before.",
        disturbance_note([others.cores]),
    ]
    results = {
        "timings": model.timings_,
        "kl": model.kl_divergence_,
        "peak_gb": peak,
        "gb_before": before,
    }
    settings = {
        "max_iter": args.max_iter,
        "perplexity": args.perplexity,
        "threads": args.threads,
        "seed": args.seed,
    }
    write_results(folder, "large", dataset, settings, results, "\n\n".join(paragraphs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
