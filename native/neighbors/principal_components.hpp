// Principal components, where most maps start: the same on every run.
#pragma once

#include "neighbors/centred_rows.hpp"

namespace acctsne {

// Up to so many features the covariance is decomposed: n d^2 against about ten passes over the
// data, each of which multiplies twice by a dozen axes.
inline constexpr Size kFewFeatures = 256;

// The coordinates of own rows on the leading principal axes of all, rows x components, up to one
// common factor. Each axis points so that its largest loading is positive, as in scikit-learn. Axes
// that the data does not have are zero. The rows may themselves be coordinates, on the orthonormal
// columns of `frame`; loadings are then those of the features that these columns have.
std::vector<double> principal_components(CentredRows& rows, Size components,
                                         const MatrixView<float>* frame, Communicator& processes,
                                         ThreadTeam& team);

} // namespace acctsne
