// Step 3, first half: Morton codes and their order.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <utility>
#include <vector>

namespace acctsne {

template <typename Real, int Dims>
struct Box {
  Real lower[Dims];
  Real side; // of a cube that holds every point
};

// The cube that the tree divides: the smallest one over [lower, upper], made a little larger so
// that no point lies on its upper faces, and never empty.
template <typename Real, int Dims>
Box<Real, Dims> root_box(const Real* lower, const Real* upper);

// codes[i] = the Morton code of point i in the box.
template <typename Real, int Dims>
void compute_morton_codes(const Real* points, Size count, const Box<Real, Dims>& box,
                          MortonCode* codes, ThreadTeam& team);

// Sorts codes, with the ids of their points, ascending by code and then by id. Fastest where they
// are nearly sorted. `code_bits` is how many low bits of a code may be set. Keeps its memory from
// sort to sort.
class CodeSorter {
public:
  using CodedPoint = std::pair<MortonCode, PointId>;

  void sort(std::vector<MortonCode>& codes, std::vector<PointId>& order, int code_bits,
            ThreadTeam& team);

  // What a worker needs to sort a bucket.
  struct Scratch {
    std::vector<CodedPoint> points;
    std::vector<CodedPoint> sorted; // by a digit
  };

private:
  std::vector<MortonCode> sorted_codes_;
  std::vector<PointId> sorted_order_;
  std::vector<std::uint32_t> places_; // chunks x buckets: where a chunk's next code goes
  std::vector<std::uint32_t> starts_; // of the buckets
  std::vector<Scratch> scratch_;      // of each worker
};

// Codes of points in the cube over [lower, upper], and how many of their bits may be set. At most
// kCompiledDims dimensions.
template <typename Real>
std::pair<std::vector<MortonCode>, int> morton_codes(const Real* points, Size count, int dims,
                                                     const Real* lower, const Real* upper,
                                                     ThreadTeam& team);

// The points' Morton order, as CodeSorter gives it; their own order if they have more than
// kCompiledDims dimensions.
template <typename Real>
std::vector<PointId> morton_order(const Real* points, Size count, int dims, const Real* lower,
                                  const Real* upper, ThreadTeam& team);

// Whether two points have the same Morton code, as those in the same place do.
template <typename Real>
bool some_share_a_code(const Real* points, Size count, int dims, const Real* lower,
                       const Real* upper, ThreadTeam& team);

} // namespace acctsne
