// Step 5, attractive forces: rows of P in parallel, SIMD over each row's neighbours
// (kernels/attractive-inl.hpp).
#include "forces/attractive.hpp"

#include "kernels/dispatch.hpp"

namespace acctsne {
namespace {

// Rows of one task: so few that the threads' shares are even for small data (benchmarks/steps.py,
// docs/tuning.md).
constexpr Size kRowsPerTask = 64;
static_assert(kEdgeBlockRows % kRowsPerTask == 0);

} // namespace

template <typename Real>
void attractive_forces(const Edges<Real>& edges, const Real* points, int dims, Rows own,
                       Real* force, ThreadTeam& team) {
  const auto kernel = kernels().attractive.of<Real>().attractive_rows.of(dims);
  const EdgeView<Real> view = edges.view();
  parallel_for(team, own, kRowsPerTask,
               [&](Size begin, Size end) { kernel(dims, view, points, begin, end, force); });
}

template <typename Real>
void cross_entropy(const Edges<Real>& edges, const Real* points, int dims, Rows own, RowSums& sums,
                   ThreadTeam& team) {
  const auto kernel = kernels().attractive.of<Real>().cross_entropy_rows.of(dims);
  const EdgeView<Real> view = edges.view();
  sums.start(view.rows, kEdgeBlockRows);
  parallel_for(team, own, kEdgeBlockRows, [&](Size begin, Size end) {
    *sums.of_row(begin) = kernel(dims, view, points, begin, end);
  });
}

#define ACCTSNE_INSTANTIATE(Real)                                                                  \
  template void attractive_forces(const Edges<Real>&, const Real*, int, Rows, Real*, ThreadTeam&); \
  template void cross_entropy(const Edges<Real>&, const Real*, int, Rows, RowSums&, ThreadTeam&);
ACCTSNE_INSTANTIATE(float)
ACCTSNE_INSTANTIATE(double)

} // namespace acctsne
