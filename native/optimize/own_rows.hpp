// What several processes have of points, each of those with its numbers, in the order of the rows
// of P, and back: a state that is kept must not depend on how many there are.
#pragma once

#include "acctsne/communicator.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace acctsne {

// Where each process's values begin among those of own points, if they are put together by whom
// their row belongs to. `order` has the row of every number.
inline std::vector<Size> begins_by_owner(const Communicator& processes,
                                         const std::vector<PointId>& order, const Owners& owners,
                                         Size width) {
  const Rows own = rows_of(processes, static_cast<Size>(order.size()));
  std::vector<Size> counts(at(processes.size()), 0);
  for (Size i = own.begin; i < own.end; ++i) {
    counts[owners.of(order[at(i)])] += width;
  }
  std::exclusive_scan(counts.begin(), counts.end(), counts.begin(), Size{0});
  return counts;
}

// Hands `width` values of each own point to the process that owns its row; returns what comes, in
// the order of numbers.
template <typename Real>
std::vector<Real> send_to_rows(Communicator& processes, const std::vector<PointId>& order,
                               const Real* of_points, Size width) {
  const auto count = static_cast<Size>(order.size());
  const Rows own = rows_of(processes, count);
  const Owners owners(processes.size(), count);
  std::vector<Size> ends = begins_by_owner(processes, order, owners, width);
  std::vector<Real> sent(at((own.end - own.begin) * width));
  for (Size i = own.begin; i < own.end; ++i) {
    Size& end = ends[owners.of(order[at(i)])];
    std::copy_n(of_points + (i - own.begin) * width, width, sent.data() + end);
    end += width;
  }
  return deliver(processes, sent, ends);
}

// From `width` values of each own point those of each own row.
template <typename Real>
std::vector<Real> to_own_rows(Communicator& processes, const std::vector<PointId>& order,
                              const Real* of_points, Size width) {
  const Rows own = rows_of(processes, static_cast<Size>(order.size()));
  std::vector<Real> arrived;
  const Real* next = of_points; // of one process, as they are
  if (processes.size() > 1) {
    arrived = send_to_rows(processes, order, of_points, width);
    next = arrived.data();
  }
  std::vector<Real> rows(at((own.end - own.begin) * width));
  for (const PointId row : order) {
    if (own.has(row)) {
      std::copy_n(next, width, rows.data() + (row - own.begin) * width);
      next += width;
    }
  }
  return rows;
}

// The reverse.
template <typename Real>
void from_own_rows(Communicator& processes, const std::vector<PointId>& order,
                   const std::vector<Real>& of_rows, Real* of_points, Size width) {
  const auto count = static_cast<Size>(order.size());
  const Rows own = rows_of(processes, count);
  const Owners owners(processes.size(), count);
  std::vector<Real> values(of_rows.size());
  std::vector<Size> ends;
  Real* next = values.data();
  for (int rank = 0; rank < processes.size(); ++rank) {
    const Rows theirs = rows_of(rank, processes.size(), count);
    for (Size i = theirs.begin; i < theirs.end; ++i) {
      const PointId row = order[at(i)];
      if (own.has(row)) {
        next = std::copy_n(of_rows.data() + (row - own.begin) * width, width, next);
      }
    }
    ends.push_back(next - values.data());
  }
  if (processes.size() > 1) { // one has them in the order of numbers already
    values = deliver(processes, values, ends);
  }
  std::vector<Size> begins = begins_by_owner(processes, order, owners, width);
  for (Size i = own.begin; i < own.end; ++i) {
    Size& begin = begins[owners.of(order[at(i)])];
    std::copy_n(values.data() + begin, width, of_points + (i - own.begin) * width);
    begin += width;
  }
}

} // namespace acctsne
