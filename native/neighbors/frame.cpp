// The frame of the data: found from a sample, left without axes where they do not help.
#include "neighbors/frame.hpp"

#include "linear/eigen.hpp"
#include "linear/subspace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace acctsne {
namespace {

using Numbers = std::vector<double>;

// With so few features there is nothing to gain from leaving some out.
constexpr Size kTooFewFeatures = 24;

// If more than this part of the pairs survives the filter, as in noise without leading axes, tiles
// over all features are cheaper than a distance for each. An estimate from operation counts.
constexpr double kMostSurvivors = 0.15;

// Up to here. Beyond, features as they are would be another copy of data that may fill memory.
constexpr Size kFeatureBytes = Size{2} << 30;

// Axes iterated beyond those wanted.
constexpr Size kSpareAxes = 16;

// Rows among which the surviving pairs are counted, about.
constexpr Size kPairedRows = 256;

// What axes cost: the same for any number of rows, while the search costs its square. So up to some
// number, poorer axes are made up for by the time that they save (benchmarks/frame.py,
// docs/tuning.md).
struct Effort {
  Size axes;
  Size sample_rows;
  int rounds;
};
constexpr Size kFewRows = 30'000;
constexpr Effort kEffortForFew{96, 2048, 2};
constexpr Effort kEffort{kExactAxes, 4096, 4};

Effort effort_for(const FrameRequest& request) {
  Effort effort = !request.axes && request.samples <= kFewRows ? kEffortForFew : kEffort;
  effort.axes = request.axes.value_or(effort.axes);
  return effort;
}

// Products of all pairs of rows, and squared distances from them.
Numbers squared_distances(const Numbers& rows, Size count, ThreadTeam& team) {
  const MatrixView<double> view =
      matrix<double>(rows.data(), count, static_cast<Size>(rows.size()) / count);
  LeftFactor<double> left;
  left.pack(view);
  Numbers distances(at(count * count), 0.0);
  add_product(left, view.transposed(), distances.data(), count, team);
  Numbers norms(at(count));
  for (Size i = 0; i < count; ++i) {
    norms[at(i)] = distances[at(i * (count + 1))];
  }
  for (Size i = 0; i < count; ++i) {
    for (Size j = 0; j < count; ++j) {
      double& distance = distances[at(i * count + j)];
      distance = i == j ? std::numeric_limits<double>::infinity()
                        : std::max(norms[at(i)] + norms[at(j)] - 2 * distance, 0.0);
    }
  }
  return distances;
}

// Estimates which part of all pairs has a bound on these axes below the distance of the nearest
// part of them.
template <typename Data>
double survivors(const PointSet<Data>& sample, const Origin& origin, const Numbers& axes,
                 double nearest, ThreadTeam& team) {
  const Size features = sample.features;
  const PointSet<Data> few =
      some_rows(sample, sample.rows, std::max<Size>(1, sample.rows / kPairedRows));
  const Size dims = static_cast<Size>(axes.size()) / features;
  std::vector<float> moved(at(few.rows * features));
  Numbers norms(at(few.rows));
  place_rows(few, origin, nullptr, moved.data(), norms.data(), team);
  const Numbers rows(moved.begin(), moved.end());
  // On the axes, and the norm of what lies beyond them.
  LeftFactor<double> left;
  left.pack(matrix<double>(rows.data(), few.rows, features));
  Numbers placed(at(few.rows * (dims + 1)), 0.0);
  add_product(left, matrix<double>(axes.data(), dims, features).transposed(), placed.data(),
              dims + 1, team);
  for (Size i = 0; i < few.rows; ++i) {
    double* place = placed.data() + i * (dims + 1);
    double beyond = norms[at(i)];
    for (Size a = 0; a < dims; ++a) {
      beyond -= place[a] * place[a];
    }
    place[dims] = std::sqrt(std::max(beyond, 0.0));
  }
  const Numbers distances = squared_distances(rows, few.rows, team);
  const Numbers bounds = squared_distances(placed, few.rows, team);
  const Size rank =
      std::min(static_cast<Size>(nearest * static_cast<double>(few.rows)), few.rows - 2);
  Size below = 0;
  Numbers ranked(at(few.rows));
  for (Size i = 0; i < few.rows; ++i) {
    std::copy_n(distances.begin() + i * few.rows, few.rows, ranked.begin());
    std::nth_element(ranked.begin(), ranked.begin() + rank, ranked.end());
    const double limit = ranked[at(rank)];
    below += std::count_if(bounds.begin() + i * few.rows, bounds.begin() + (i + 1) * few.rows,
                           [limit](double bound) { return bound < limit; });
  }
  return static_cast<double>(below) / static_cast<double>(few.rows * few.rows);
}

} // namespace

SampledRows sampled_rows(const FrameRequest& request) {
  const Size wanted = effort_for(request).sample_rows;
  const Size step = std::max<Size>(1, request.samples / wanted);
  return {std::min(request.samples, wanted * step), step};
}

template <typename Data>
Frame frame_of_sample(const PointSet<Data>& sample, double largest, const FrameRequest& request,
                      ThreadTeam& team) {
  const Effort effort = effort_for(request);
  const Size features = sample.features;
  Frame frame;
  frame.origin.scale = power_of_two_scale<Data>(largest);
  const std::unique_ptr<CentredRows> rows = centred_sample(sample, frame.origin, team);
  if (features <= kTooFewFeatures || sample.rows <= 2 * effort.axes) {
    return frame; // or too few rows to be worth the trouble
  }
  Numbers axes;
  if (features <= effort.axes) {
    axes = symmetric_eigen(rows->covariance(), features, team).vectors;
  } else {
    axes = random_basis(std::min(effort.axes + kSpareAxes, features), features, team);
    iterate(
        axes, features, {effort.rounds},
        [&](const Numbers& basis, double* products) { rows->covariance_times(basis, 1, products); },
        one_process, team);
    axes.resize(at(effort.axes * features));
    const double nearest =
        static_cast<double>(request.neighbors) / static_cast<double>(request.samples);
    if (Size{sizeof(float)} * request.samples * features <= kFeatureBytes &&
        survivors(sample, frame.origin, axes, nearest, team) > kMostSurvivors) {
      return frame;
    }
  }
  frame.axes = static_cast<Size>(axes.size()) / features;
  frame.columns.resize(axes.size());
  for (Size a = 0; a < frame.axes; ++a) {
    for (Size f = 0; f < features; ++f) {
      frame.columns[at(f * frame.axes + a)] = static_cast<float>(axes[at(a * features + f)]);
    }
  }
  return frame;
}

template <typename Data>
Frame find_frame(const PointSet<Data>& points, Size neighbors, std::optional<Size> axes,
                 ThreadTeam& team) {
  const FrameRequest request{points.rows, neighbors, axes};
  const SampledRows sampled = sampled_rows(request);
  // Bytes and halves need no scale, whichever they are.
  const double largest =
      points.layout.stored == Stored::as_computed ? largest_size(points, team) : 1;
  return frame_of_sample(some_rows(points, sampled.stop, sampled.step), largest, request, team);
}

template <typename Data>
ProjectedRows::ProjectedRows(const PointSet<Data>& rows, const Frame& frame, ThreadTeam& team)
    : coordinates(at(rows.rows * frame.dims())), squared_norms(at(rows.rows)), dims_(frame.dims()),
      scale_(frame.origin.scale) {
  const MatrixView<float> axes =
      matrix<float>(frame.columns.data(), frame.features(), frame.axes).transposed();
  place_rows(rows, frame.origin, frame.axes > 0 ? &axes : nullptr, coordinates.data(),
             squared_norms.data(), team);
}

#define ACCTSNE_FRAMES_OF(Data)                                                                    \
  template Frame frame_of_sample(const PointSet<Data>&, double, const FrameRequest&, ThreadTeam&); \
  template Frame find_frame(const PointSet<Data>&, Size, std::optional<Size>, ThreadTeam&);        \
  template ProjectedRows::ProjectedRows(const PointSet<Data>&, const Frame&, ThreadTeam&);
ACCTSNE_FRAMES_OF(float)
ACCTSNE_FRAMES_OF(double)
#undef ACCTSNE_FRAMES_OF

} // namespace acctsne
