"""How many processes a launcher has started together, and which one this is."""

import os

# What mpiexec of MPICH and of Open MPI tell those that they start; what srun does.
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def launched_processes() -> int:
    """Return how many processes run the same program, as far as the environment tells; 1 if not.

    Slurm tells its batch script, too, how many tasks a job has; only what `srun` starts is one of
    them.
    """
    for name in SIZES:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    step = os.environ.get("SLURM_STEP_ID", "")
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", os.environ.get("SLURM_NTASKS", ""))
    # Steps that are not srun's have names or very large numbers.
    started = step.isdigit() and int(step) < 2**31
    return int(tasks) if started and tasks.isdigit() else 1


def launched_rank() -> int:
    """Return which of these processes this one is, before MPI can say so; 0 if there is one."""
    told = [os.environ.get(name, "") for name in RANKS if launched_processes() > 1]
    return next((int(rank) for rank in told if rank.isdigit()), 0)
