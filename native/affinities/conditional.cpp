// Puts each row of the conditional probabilities into the order of its columns, and checks whether
// rows are in it. By a radix sort: comparisons of random columns mispredict every other time.
#include "affinities/conditional.hpp"

#include <atomic>
#include <bit>
#include <utility>
#include <vector>

namespace acctsne {
namespace {

constexpr Size kRowsPerChunk = 512;
constexpr int kDigitBits = 8;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

template <typename Real>
struct Entry {
  PointId column;
  Real value;
};

// Least digit first. `column_bits` is how many bits columns have.
template <typename Real>
void sort_row(std::vector<Entry<Real>>& row, std::vector<Entry<Real>>& scratch, int column_bits) {
  scratch.resize(row.size());
  for (int shift = 0; shift < column_bits; shift += kDigitBits) {
    const auto digit = [shift](const Entry<Real>& entry) {
      return at(entry.column >> shift) & (kDigits - 1);
    };
    std::uint32_t places[kDigits] = {};
    for (const Entry<Real>& entry : row) {
      ++places[digit(entry)];
    }
    std::uint32_t start = 0;
    for (std::uint32_t& place : places) {
      start += std::exchange(place, start);
    }
    for (const Entry<Real>& entry : row) {
      scratch[places[digit(entry)]++] = entry;
    }
    row.swap(scratch);
  }
}

} // namespace

template <typename Real>
void sort_by_column(PointId* indices, Real* values, Size rows, Size neighbors, Size points,
                    ThreadTeam& team) {
  const Step step("symmetrisation");
  struct Scratch {
    std::vector<Entry<Real>> row;
    std::vector<Entry<Real>> other;
  };
  std::vector<Scratch> scratch(at(team.size()));
  const auto column_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(points)));
  parallel_for(team, rows, kRowsPerChunk, [&](Size begin, Size end, int worker) {
    auto& [row, other] = scratch[at(worker)];
    row.resize(at(neighbors));
    for (Size i = begin; i < end; ++i) {
      PointId* row_columns = indices + i * neighbors;
      Real* row_values = values + i * neighbors;
      for (std::size_t e = 0; e < row.size(); ++e) {
        row[e] = {row_columns[e], row_values[e]};
      }
      sort_row(row, other, column_bits);
      for (std::size_t e = 0; e < row.size(); ++e) {
        row_columns[e] = row[e].column;
        row_values[e] = row[e].value;
      }
    }
  });
}

template <typename Real>
bool is_sorted_by_column(const Conditional<Real>& conditional, Size points, ThreadTeam& team) {
  const Step step("symmetrisation");
  std::atomic<bool> sorted{true};
  parallel_for(team, conditional.rows, kRowsPerChunk, [&](Size begin, Size end) {
    bool all = true;
    for (Size i = begin; i < end; ++i) {
      const PointId* columns = conditional.columns_of(i);
      PointId last = 0;
      for (Size e = 0; e < conditional.neighbors; ++e) {
        all &= last <= columns[e];
        last = columns[e];
      }
      all &= last < points;
    }
    if (!all) {
      sorted.store(false, std::memory_order_relaxed);
    }
  });
  return sorted;
}

#define ACCTSNE_INSTANTIATE(Real)                                                                  \
  template void sort_by_column(PointId*, Real*, Size, Size, Size, ThreadTeam&);                    \
  template bool is_sorted_by_column(const Conditional<Real>&, Size, ThreadTeam&);
ACCTSNE_INSTANTIATE(float)
ACCTSNE_INSTANTIATE(double)

} // namespace acctsne
