"""A layout being optimised: the object, its way through a schedule, checkpoints, new points."""
