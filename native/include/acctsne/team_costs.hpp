// What a thread team costs beside the work: measured, for benchmarks/simulate.py.
#pragma once

namespace acctsne {

// Medians over loops, in seconds.
struct TeamCosts {
  double open;  // from the call to the owner's first chunk
  double wake;  // from the call to a helper's first chunk
  double close; // from the end of the last chunk to the return
};

// Of a team of so many threads, whose helpers still spin from the loop before or have fallen
// asleep. With more threads than cores, the system's time slices are in it too.
TeamCosts measure_team_costs(int threads, bool asleep, int loops);

// How long a cache line takes from one core to another, at best; needs two of them.
double line_transfer_seconds();

} // namespace acctsne
