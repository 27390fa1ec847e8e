// Step 3, first half (the paper's Algorithm 1 and the sort).
//
// 1. Codes: one SIMD pass over chunks of points.
// 2. Sort. The codes come in the order of the previous sort, and points move little in between, so
//    that they are nearly sorted. One pass puts them into buckets by their leading bits: per chunk
//    a histogram, one running sum over buckets and chunks, per chunk a scatter. Each bucket is then
//    sorted in cache: by insertion as long as that has little to move, else by its own leading bits
//    first.
//
// Equal codes are ordered by their points' ids, so that the result depends neither on the threads
// nor on the order before.
#include "tree/morton.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace acctsne {
namespace {

constexpr Size kChunk = 8192;
// Points of an average bucket. Few enough for insertion, enough to be worth a counter.
constexpr Size kBucketPoints = 64;
constexpr int kMostBucketBits = 11;
constexpr Size kBucketsPerTask = 16;
// Moves for each element after which insertion is given up (benchmarks/steps.py, docs/tuning.md).
constexpr Size kMovesPerElement = 2;
// Bits that a bucket is sorted by at a time, twice.
constexpr int kDigitBits = 8;

using CodedPoint = CodeSorter::CodedPoint;

// Sorts by insertion, unless that takes too many moves.
bool sort_by_insertion(MortonCode* codes, PointId* order, Size count) {
  Size moves_left = kMovesPerElement * count;
  for (Size i = 1; i < count; ++i) {
    const CodedPoint moved{codes[i], order[i]};
    Size place = i;
    while (place > 0 && moved < CodedPoint{codes[place - 1], order[place - 1]}) {
      codes[place] = codes[place - 1];
      order[place] = order[place - 1];
      --place;
    }
    codes[place] = moved.first;
    order[place] = moved.second;
    moves_left -= i - place;
    if (moves_left < 0) {
      return false;
    }
  }
  return true;
}

// Sorts by one digit, equal ones staying in their order.
void sort_by_digit(const std::vector<CodedPoint>& from, std::vector<CodedPoint>& to, int shift) {
  constexpr MortonCode kMask = (MortonCode{1} << kDigitBits) - 1;
  std::uint32_t places[std::size_t{1} << kDigitBits] = {};
  for (const CodedPoint& point : from) {
    ++places[(point.first >> shift) & kMask];
  }
  std::exclusive_scan(std::begin(places), std::end(places), std::begin(places), 0u);
  to.resize(from.size());
  for (const CodedPoint& point : from) {
    to[places[(point.first >> shift) & kMask]++] = point;
  }
}

void sort_bucket(MortonCode* codes, PointId* order, Size count, CodeSorter::Scratch& scratch) {
  if (sort_by_insertion(codes, order, count)) {
    return;
  }
  MortonCode differing = 0;
  scratch.points.clear();
  for (Size i = 0; i < count; ++i) {
    differing |= codes[i] ^ codes[0];
    scratch.points.emplace_back(codes[i], order[i]);
  }
  const auto write = [&] {
    for (Size i = 0; i < count; ++i) {
      codes[i] = scratch.points[at(i)].first;
      order[i] = scratch.points[at(i)].second;
    }
  };
  const int shift = std::max(0, static_cast<int>(std::bit_width(differing)) - 2 * kDigitBits);
  sort_by_digit(scratch.points, scratch.sorted, shift);
  sort_by_digit(scratch.sorted, scratch.points, shift + kDigitBits);
  write();
  if (!sort_by_insertion(codes, order, count)) {
    // A crowd in one small place of a wide bucket.
    std::sort(scratch.points.begin(), scratch.points.end());
    write();
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
  const auto kernel = kernels().tree.of<Real>().morton_codes[Dims - 1];
  const auto scale =
      static_cast<Real>(std::ldexp(1.0, kMortonBits<Dims>) / static_cast<double>(box.side));
  parallel_for(team, count, kChunk, [&](Size begin, Size end) {
    kernel(points + begin * Dims, end - begin, box.lower, scale, codes + begin);
  });
}

void CodeSorter::sort(std::vector<MortonCode>& codes, std::vector<PointId>& order, int code_bits,
                      ThreadTeam& team) {
  const Size count = static_cast<Size>(codes.size());
  scratch_.resize(at(team.size()));
  const auto average_buckets = static_cast<std::uint64_t>(count / kBucketPoints);
  const int bucket_bits =
      std::min(kMostBucketBits, static_cast<int>(std::bit_width(average_buckets)));
  if (bucket_bits <= 1) {
    sort_bucket(codes.data(), order.data(), count, scratch_[0]);
    return;
  }

  const int shift = code_bits - bucket_bits;
  const auto buckets = std::size_t{1} << bucket_bits;
  const auto chunks = static_cast<std::size_t>(chunk_count(count, kChunk));
  places_.resize(chunks * buckets);
  starts_.resize(buckets + 1);
  sorted_codes_.resize(codes.size());
  sorted_order_.resize(order.size());
  const auto chunk_places = [&](Size begin) {
    return places_.data() + at(begin / kChunk) * buckets;
  };
  parallel_for(team, count, kChunk, [&](Size begin, Size end) {
    std::uint32_t* histogram = chunk_places(begin);
    std::fill_n(histogram, buckets, 0u);
    for (Size i = begin; i < end; ++i) {
      ++histogram[codes[at(i)] >> shift];
    }
  });
  std::uint32_t start = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    starts_[bucket] = start;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      start += std::exchange(places_[chunk * buckets + bucket], start);
    }
  }
  starts_[buckets] = start;
  parallel_for(team, count, kChunk, [&](Size begin, Size end) {
    std::uint32_t* next = chunk_places(begin);
    for (Size i = begin; i < end; ++i) {
      const auto from = static_cast<std::size_t>(i);
      const std::uint32_t to = next[codes[from] >> shift]++;
      sorted_codes_[to] = codes[from];
      sorted_order_[to] = order[from];
    }
  });
  const auto sort_buckets = [&](Size begin, Size end, int worker) {
    for (auto bucket = at(begin); bucket < at(end); ++bucket) {
      sort_bucket(sorted_codes_.data() + starts_[bucket], sorted_order_.data() + starts_[bucket],
                  Size{starts_[bucket + 1]} - Size{starts_[bucket]}, scratch_[at(worker)]);
    }
  };
  parallel_for(team, static_cast<Size>(buckets), kBucketsPerTask, sort_buckets);
  codes.swap(sorted_codes_);
  order.swap(sorted_order_);
}

template <typename Real>
std::pair<std::vector<MortonCode>, int> morton_codes(const Real* points, Size count, int dims,
                                                     const Real* lower, const Real* upper,
                                                     ThreadTeam& team) {
  std::vector<MortonCode> codes(at(count));
  return with_dims(dims, [&](auto d) {
    constexpr int kDims = d();
    compute_morton_codes<Real, kDims>(points, count, root_box<Real, kDims>(lower, upper),
                                      codes.data(), team);
    return std::pair(std::move(codes), kDims * kMortonBits<kDims>);
  });
}

template <typename Real>
std::vector<PointId> morton_order(const Real* points, Size count, int dims, const Real* lower,
                                  const Real* upper, ThreadTeam& team) {
  std::vector<PointId> order(at(count));
  std::iota(order.begin(), order.end(), PointId{0});
  if (dims <= kCompiledDims) {
    auto [codes, bits] = morton_codes(points, count, dims, lower, upper, team);
    CodeSorter().sort(codes, order, bits, team);
  }
  return order;
}

template <typename Real>
bool some_share_a_code(const Real* points, Size count, int dims, const Real* lower,
                       const Real* upper, ThreadTeam& team) {
  auto [codes, bits] = morton_codes(points, count, dims, lower, upper, team);
  std::vector<PointId> order(codes.size(), PointId{0});
  CodeSorter().sort(codes, order, bits, team);
  return std::ranges::adjacent_find(codes) != codes.end();
}

#define ACCTSNE_INSTANTIATE(Real)                                                                  \
  template std::pair<std::vector<MortonCode>, int> morton_codes(                                   \
      const Real*, Size, int, const Real*, const Real*, ThreadTeam&);                              \
  template std::vector<PointId> morton_order(const Real*, Size, int, const Real*, const Real*,     \
                                             ThreadTeam&);                                         \
  template bool some_share_a_code(const Real*, Size, int, const Real*, const Real*, ThreadTeam&);
ACCTSNE_INSTANTIATE(float)
ACCTSNE_INSTANTIATE(double)
#undef ACCTSNE_INSTANTIATE

#define ACCTSNE_INSTANTIATE(Real, Dims)                                                            \
  template Box<Real, Dims> root_box(const Real*, const Real*);                                     \
  template void compute_morton_codes(const Real*, Size, const Box<Real, Dims>&, MortonCode*,       \
                                     ThreadTeam&);
ACCTSNE_FOR_REALS_AND_DIMS(ACCTSNE_INSTANTIATE)
#undef ACCTSNE_INSTANTIATE

} // namespace acctsne
