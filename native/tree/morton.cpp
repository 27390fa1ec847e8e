// Step 3, first half (the paper's Algorithm 1 and the sort).
//
// 1. Codes: one SIMD pass over chunks of points.
// 2. Radix sort, least digit first, of the leading bits: per chunk a histogram, one running sum
//    over digits and chunks, per chunk a scatter. Chunks are fixed and the scatter is stable, so
//    the order does not depend on the threads.
// 3. Codes that agree in all those bits are few: their runs are sorted by the rest.
#include "tree/morton.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace acctsne {
namespace {

// Digits of the radix sort: wide ones take fewer passes, narrow ones fewer counters.
struct Digits {
  int bits;
  int passes;
  int sorted_bits() const { return bits * passes; }
  Size count() const { return Size{1} << bits; }
};
constexpr Digits kWide{11, 3};
constexpr Digits kNarrow{8, 4};
// Below this many points narrow digits are faster: 2048 counters are as much work as the points.
constexpr Size kSmall = 8192;
// Below this many a comparison sort is.
constexpr Size kTiny = 64;
constexpr Size kChunk = 16384;

void sort_run(MortonCode* codes, PointId* order, Size count,
              std::vector<std::pair<MortonCode, PointId>>& pairs) {
  pairs.clear();
  for (Size i = 0; i < count; ++i) {
    pairs.emplace_back(codes[i], order[i]);
  }
  std::sort(pairs.begin(), pairs.end());
  for (Size i = 0; i < count; ++i) {
    codes[i] = pairs[static_cast<std::size_t>(i)].first;
    order[i] = pairs[static_cast<std::size_t>(i)].second;
  }
}

} // namespace

template <typename Real, int Dims>
Box<Real, Dims> root_box(const Real* lower, const Real* upper) {
  Box<Real, Dims> box;
  Real side = 0;
  Real largest = 0;
  for (int axis = 0; axis < Dims; ++axis) {
    box.lower[axis] = lower[axis];
    side = std::max(side, upper[axis] - lower[axis]);
    largest = std::max({largest, std::abs(lower[axis]), std::abs(upper[axis])});
  }
  // 4 ulp of the largest coordinate cover the rounding of upper - lower; the factor keeps the upper
  // faces free. For a cloud without extent any positive side will do, as long as 1 / side is
  // finite.
  constexpr Real kEpsilon = std::numeric_limits<Real>::epsilon();
  constexpr Real kSmallestSide = std::numeric_limits<Real>::min() * Real(1e10);
  side = std::min(side, std::numeric_limits<Real>::max() / 4);
  box.side = std::max(side * (1 + 4 * kEpsilon) + 4 * kEpsilon * largest, kSmallestSide);
  return box;
}

template <typename Real, int Dims>
void compute_morton_codes(const Real* points, Size count, const Box<Real, Dims>& box,
                          MortonCode* codes, ThreadTeam& team) {
  const auto kernel = kernels().of<Real>().morton_codes[Dims - 1];
  const auto scale =
      static_cast<Real>(std::ldexp(1.0, kMortonBits<Dims>) / static_cast<double>(box.side));
  parallel_for(team, count, kChunk, [&](Size begin, Size end) {
    kernel(points + begin * Dims, end - begin, box.lower, scale, codes + begin);
  });
}

void sort_codes(std::vector<MortonCode>& codes, std::vector<PointId>& order,
                std::vector<MortonCode>& codes_scratch, std::vector<PointId>& order_scratch,
                std::vector<std::uint32_t>& histograms, int code_bits, ThreadTeam& team) {
  const Size count = static_cast<Size>(codes.size());
  std::iota(order.begin(), order.end(), PointId{0});
  std::vector<std::vector<std::pair<MortonCode, PointId>>> pairs(
      static_cast<std::size_t>(team.size()));
  if (count < kTiny) {
    sort_run(codes.data(), order.data(), count, pairs[0]);
    return;
  }

  const Digits digits = count < kSmall ? kNarrow : kWide;
  const auto counters = static_cast<std::size_t>(digits.count());
  const int lowest_bit = std::max(0, code_bits - digits.sorted_bits());
  const Size chunks = chunk_count(count, kChunk);
  histograms.resize(static_cast<std::size_t>(chunks) * counters);
  for (int pass = 0; pass < digits.passes; ++pass) {
    const int shift = lowest_bit + pass * digits.bits;
    const auto digit = [shift, counters](MortonCode code) {
      return static_cast<std::size_t>(code >> shift) & (counters - 1);
    };
    parallel_for(team, count, kChunk, [&](Size begin, Size end) {
      std::uint32_t* histogram = histograms.data() + begin / kChunk * digits.count();
      std::fill_n(histogram, counters, 0u);
      for (Size i = begin; i < end; ++i) {
        ++histogram[digit(codes[static_cast<std::size_t>(i)])];
      }
    });
    std::uint32_t start = 0;
    for (std::size_t d = 0; d < counters; ++d) {
      for (std::size_t chunk = 0; chunk < static_cast<std::size_t>(chunks); ++chunk) {
        start += std::exchange(histograms[chunk * counters + d], start);
      }
    }
    parallel_for(team, count, kChunk, [&](Size begin, Size end) {
      std::uint32_t* next = histograms.data() + begin / kChunk * digits.count();
      for (Size i = begin; i < end; ++i) {
        const auto from = static_cast<std::size_t>(i);
        const std::uint32_t to = next[digit(codes[from])]++;
        codes_scratch[to] = codes[from];
        order_scratch[to] = order[from];
      }
    });
    codes.swap(codes_scratch);
    order.swap(order_scratch);
  }

  // A run belongs to the chunk in which it begins.
  const auto same_run = [&](Size a, Size b) {
    return codes[static_cast<std::size_t>(a)] >> lowest_bit ==
           codes[static_cast<std::size_t>(b)] >> lowest_bit;
  };
  if (lowest_bit == 0) {
    return;
  }
  // Where each chunk's first run begins and its last one ends, found before any run is changed.
  std::vector<Size> borders(static_cast<std::size_t>(chunks + 1), count);
  parallel_for(team, chunks, 1, [&](Size chunk, Size) {
    Size begin = chunk * kChunk;
    while (begin < count && begin > 0 && same_run(begin - 1, begin)) {
      ++begin;
    }
    borders[static_cast<std::size_t>(chunk)] = begin;
  });
  team.for_chunks(chunks, [&](Size chunk, int worker) {
    Size begin = borders[static_cast<std::size_t>(chunk)];
    const Size stop = borders[static_cast<std::size_t>(chunk + 1)];
    while (begin < stop) {
      Size end = begin + 1;
      bool sorted = true;
      while (end < stop && same_run(begin, end)) {
        sorted = sorted &&
                 codes[static_cast<std::size_t>(end - 1)] <= codes[static_cast<std::size_t>(end)];
        ++end;
      }
      if (!sorted) {
        sort_run(codes.data() + begin, order.data() + begin, end - begin,
                 pairs[static_cast<std::size_t>(worker)]);
      }
      begin = end;
    }
  });
}

template <typename Real, int Dims>
std::vector<PointId> morton_order(const Real* points, Size count, const Real* lower,
                                  const Real* upper, ThreadTeam& team) {
  const auto n = static_cast<std::size_t>(count);
  std::vector<MortonCode> codes(n);
  std::vector<MortonCode> codes_scratch(n);
  std::vector<PointId> order(n);
  std::vector<PointId> order_scratch(n);
  std::vector<std::uint32_t> histograms;
  compute_morton_codes<Real, Dims>(points, count, root_box<Real, Dims>(lower, upper), codes.data(),
                                   team);
  sort_codes(codes, order, codes_scratch, order_scratch, histograms, Dims * kMortonBits<Dims>,
             team);
  return order;
}

#define ACCTSNE_INSTANTIATE(Real, Dims)                                                            \
  template Box<Real, Dims> root_box(const Real*, const Real*);                                     \
  template void compute_morton_codes(const Real*, Size, const Box<Real, Dims>&, MortonCode*,       \
                                     ThreadTeam&);                                                 \
  template std::vector<PointId> morton_order<Real, Dims>(const Real*, Size, const Real*,           \
                                                         const Real*, ThreadTeam&);
ACCTSNE_INSTANTIATE(float, 1)
ACCTSNE_INSTANTIATE(float, 2)
ACCTSNE_INSTANTIATE(float, 3)
ACCTSNE_INSTANTIATE(double, 1)
ACCTSNE_INSTANTIATE(double, 2)
ACCTSNE_INSTANTIATE(double, 3)

} // namespace acctsne
