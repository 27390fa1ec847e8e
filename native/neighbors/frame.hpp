// The frame of the data: scale, centre and leading axes, on which the searches filter.
//
// Any centre and orthonormal axes give true lower bounds of distances; those of largest variance
// give tight ones. So a sample and a few rounds of subspace iteration are enough.
#pragma once

#include "neighbors/centred_rows.hpp"

#include <optional>

namespace acctsne {

// Axes kept for exact searches, and for approximate ones, which look at fewer pairs
// (benchmarks/frame.py, docs/tuning.md).
inline constexpr Size kExactAxes = 192;
inline constexpr Size kApproximateAxes = 128;

struct Frame {
  Origin origin;
  Size axes = 0;              // 0 for the features as they are
  std::vector<float> columns; // features x axes, orthonormal

  Size features() const { return static_cast<Size>(origin.centre.size()); }
  Size dims() const { return axes > 0 ? axes : features(); }
};

// What a frame is found for.
struct FrameRequest {
  Size samples;             // of the whole data
  Size neighbors;           // that a search is to find for each
  std::optional<Size> axes; // at most; without, as many as pay in an exact search
};

// The rows that the axes of so many are computed from: every `step`-th before `stop`.
struct SampledRows {
  Size stop;
  Size step;
};
SampledRows sampled_rows(const FrameRequest& request);

// Finds the frame of data by its sampled rows and the size of its largest number.
template <typename Data>
Frame frame_of_sample(const PointSet<Data>& sample, double largest, const FrameRequest& request,
                      ThreadTeam& team);

// Finds the frame of data.
template <typename Data>
Frame find_frame(const PointSet<Data>& points, Size neighbors, std::optional<Size> axes,
                 ThreadTeam& team);

// Rows in a frame, as the searches take them.
class ProjectedRows {
public:
  template <typename Data>
  ProjectedRows(const PointSet<Data>& rows, const Frame& frame, ThreadTeam& team);

  Projection view() const { return {coordinates.data(), dims_, squared_norms.data(), scale_}; }
  std::vector<float> coordinates;
  std::vector<double> squared_norms;

private:
  Size dims_;
  double scale_;
};

} // namespace acctsne
