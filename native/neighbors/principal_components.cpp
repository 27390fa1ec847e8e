// Principal components: the covariance itself is decomposed where features are few. Otherwise a few
// axes are iterated until their variances stand still, first on a sample, so that few passes over
// the data are needed.
#include "neighbors/principal_components.hpp"

#include "linear/eigen.hpp"
#include "linear/subspace.hpp"

#include <algorithm>
#include <cmath>

namespace acctsne {
namespace {

using Numbers = std::vector<double>;

// Axes iterated beyond those wanted: they let the wanted ones converge by the gap to the last.
constexpr Size kSpareAxes = 10;

// Leading variances that change by less, relatively, between two passes have converged; axes are
// then right to about the root of it, which is plenty for where t-SNE starts.
constexpr double kVarianceTolerance = 1e-6;
constexpr int kMostPasses = 40;

// Rows that the iteration starts from, about.
constexpr Size kSampleRows = 4096;

Numbers principal_axes(CentredRows& rows, Size wanted, Communicator& processes, ThreadTeam& team) {
  const Size features = rows.features();
  Numbers axes;
  if (features <= kFewFeatures) {
    axes = symmetric_eigen(rows.covariance(), features, team).vectors;
  } else {
    axes = random_basis(std::min(wanted + kSpareAxes, features), features, team);
    const auto turn = [&](Size step) {
      iterate(
          axes, features, {kMostPasses, kVarianceTolerance, wanted},
          [&](const Numbers& basis, double* products) {
            rows.covariance_times(basis, step, products);
          },
          processes, team);
    };
    const Size step = rows.samples() / kSampleRows;
    if (step > 1) {
      turn(step);
    }
    turn(1);
  }
  axes.resize(at(wanted * features));
  return axes;
}

// The largest loading of an axis, with its sign.
double largest_loading(const double* axis, Size features, const MatrixView<float>* frame) {
  double largest = 0;
  const auto meet = [&](double loading) {
    if (std::abs(loading) > std::abs(largest)) {
      largest = loading;
    }
  };
  if (frame == nullptr) {
    std::for_each(axis, axis + features, meet);
    return largest;
  }
  for (Size f = 0; f < frame->rows; ++f) {
    double loading = 0;
    for (Size a = 0; a < features; ++a) {
      loading += double{frame->numbers[f * frame->row_stride + a * frame->column_stride]} * axis[a];
    }
    meet(loading);
  }
  return largest;
}

} // namespace

Numbers principal_components(CentredRows& rows, Size components, const MatrixView<float>* frame,
                             Communicator& processes, ThreadTeam& team) {
  const Size features = rows.features();
  const Size wanted = std::min({components, rows.samples(), features});
  Numbers axes = principal_axes(rows, wanted, processes, team);
  for (Size a = 0; a < wanted; ++a) {
    double* axis = axes.data() + a * features;
    if (largest_loading(axis, features, frame) < 0) {
      std::transform(axis, axis + features, axis, [](double x) { return -x; });
    }
  }
  // Those that run on another processor may have rounded otherwise.
  broadcast(processes, std::span(axes));
  Numbers found = rows.times(axes);
  if (wanted == components) {
    return found;
  }
  const Size own = static_cast<Size>(found.size()) / wanted;
  Numbers padded(at(own * components), 0.0);
  for (Size i = 0; i < own; ++i) {
    std::copy_n(found.begin() + i * wanted, wanted, padded.begin() + i * components);
  }
  return padded;
}

} // namespace acctsne
