// Numbering the points of a layout anew by several processes: a sort by samples, whose samples are
// all codes that there can be.
//
// 1. Each process sorts its own points by Morton code.
// 2. The codes that divide the processes' new points are found by bisection; in each round everyone
//    says how many of its codes are below. Points with such a code are divided in the order of
//    their present numbers, as one process sorts them.
// 3. Points go to their new owners, who sort them again.
#include "optimize/relabel.hpp"

#include "tree/morton.hpp"

#include <algorithm>
#include <numeric>

namespace acctsne {
namespace {

constexpr Size kPointsPerChunk = 4096;

// Of sorted codes of own points, where those end that go to each process.
std::vector<Size> divide(const std::vector<MortonCode>& codes, int code_bits, Size rows,
                         Communicator& processes) {
  const auto everyone = static_cast<std::size_t>(processes.size());
  const std::size_t borders = everyone - 1;
  // How many codes are below, or not above.
  const auto below = [&](MortonCode code) {
    return std::ranges::lower_bound(codes, code) - codes.begin();
  };
  const auto not_above = [&](MortonCode code) {
    return std::ranges::upper_bound(codes, code) - codes.begin();
  };
  // Of every process, a number for each border.
  const auto of_all = [&](auto&& number) {
    std::vector<Size> mine(borders);
    for (std::size_t border = 0; border < borders; ++border) {
      mine[border] = number(border);
    }
    return gather_numbers(processes, mine);
  };
  const auto total = [&](const std::vector<Size>& numbers, std::size_t border, std::size_t before) {
    Size sum = 0;
    for (std::size_t rank = 0; rank < before; ++rank) {
      sum += numbers[rank * borders + border];
    }
    return sum;
  };
  std::vector<Size> wanted(borders);
  for (std::size_t border = 0; border < borders; ++border) {
    wanted[border] = rows_of(static_cast<int>(border), processes.size(), rows).end;
  }

  // The smallest code of each border that so many are not above.
  std::vector<MortonCode> low(borders, 0);
  std::vector<MortonCode> high(borders, (MortonCode{1} << code_bits) - 1);
  for (int round = 0; round < code_bits; ++round) {
    const auto middle = [&](std::size_t border) {
      return low[border] + (high[border] - low[border]) / 2;
    };
    const std::vector<Size> counts =
        of_all([&](std::size_t border) { return not_above(middle(border)); });
    for (std::size_t border = 0; border < borders; ++border) {
      const MortonCode at = middle(border);
      if (total(counts, border, everyone) >= wanted[border]) {
        high[border] = at;
      } else {
        low[border] = std::min(at + 1, high[border]);
      }
    }
  }
  const std::vector<Size> smaller = of_all([&](std::size_t border) { return below(low[border]); });
  const std::vector<Size> equal =
      of_all([&](std::size_t border) { return not_above(low[border]) - below(low[border]); });
  const auto self = static_cast<std::size_t>(processes.rank());
  std::vector<Size> ends;
  for (std::size_t border = 0; border < borders; ++border) {
    const Size taken =
        wanted[border] - total(smaller, border, everyone) - total(equal, border, self);
    ends.push_back(smaller[self * borders + border] +
                   std::clamp(taken, Size{0}, equal[self * borders + border]));
  }
  ends.push_back(static_cast<Size>(codes.size()));
  return ends;
}

} // namespace

template <typename Real>
void relabel_together(Layout<Real>& layout, Communicator& processes, ThreadTeam& team) {
  const int dims = layout.dims;
  if (dims > kCompiledDims) {
    return; // as morton_order() leaves it
  }
  const ThreadTeam::Uninterrupted to_the_end(team);
  const Rows own = rows_of(processes, layout.size());
  const Size count = own.end - own.begin;
  auto [codes, bits] = morton_codes(layout.points.data() + own.begin * dims, count, dims,
                                    layout.lower.data(), layout.upper.data(), team);
  std::vector<PointId> leaving(codes.size());
  std::iota(leaving.begin(), leaving.end(), PointId{0});
  CodeSorter sorter;
  sorter.sort(codes, leaving, bits, team);
  const std::vector<Size> ends = divide(codes, bits, layout.size(), processes);
  codes = deliver(processes, codes, ends);
  std::vector<PointId> arriving(codes.size());
  std::iota(arriving.begin(), arriving.end(), PointId{0});
  sorter.sort(codes, arriving, bits, team);

  // Values of own points, so many of each.
  const auto move = [&]<typename Value>(Value* own_values, Size width) {
    std::vector<Value> sent(leaving.size() * at(width));
    const auto copy = [&](const std::vector<PointId>& from, const Value* values, Value* to) {
      parallel_for(team, count, kPointsPerChunk, [&](Size begin, Size end) {
        for (Size i = begin; i < end; ++i) {
          std::copy_n(values + from[at(i)] * width, width, to + i * width);
        }
      });
    };
    copy(leaving, own_values, sent.data());
    std::vector<Size> value_ends(ends.size());
    std::ranges::transform(ends, value_ends.begin(), [width](Size end) { return end * width; });
    const std::vector<Value> arrived = deliver(processes, sent, value_ends);
    copy(arriving, arrived.data(), own_values);
  };
  for (std::vector<Real>* values :
       {&layout.points, &layout.updates, &layout.gains, &layout.preconditioner}) {
    move(values->data() + own.begin * dims, dims);
  }
  if (!layout.fixed.empty()) {
    move(layout.fixed.data() + own.begin, 1);
  }
  move(layout.order.data() + own.begin, 1);
  gather_rows(processes, layout.order.data(), layout.size(), 1);
}

template void relabel_together(Layout<float>&, Communicator&, ThreadTeam&);
template void relabel_together(Layout<double>&, Communicator&, ThreadTeam&);

} // namespace acctsne
