// Rows of the data less their mean, times a power of two that brings squares into range: what axes
// of large variance are found from, and what is placed on them. Rows are read where they are, a few
// at a time; those of a sparse matrix stay sparse where there are many features.
//
// Sums over rows are kept by block and added in the order of blocks, so that neither threads nor
// processes, which own whole blocks, change a bit.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/csr.hpp"
#include "linear/product.hpp"
#include "neighbors/points.hpp"

#include <memory>
#include <vector>

namespace acctsne {

// What is done to numbers of the data before anything is computed with them.
struct Origin {
  double scale = 1; // a power of two
  std::vector<double> centre;
};

// A scale that brings squares of numbers up to this size into float's range, 1 if they are there,
// as far as a number of the data's precision can say it.
template <typename Data>
double power_of_two_scale(double largest);

// The size of the largest number of the rows; none has 0.
template <typename Data>
double largest_size(const PointSet<Data>& rows, ThreadTeam& team);

// Whether none of their numbers is infinite or no number; halves are taken for finite.
template <typename Data>
bool all_finite(const PointSet<Data>& rows, ThreadTeam& team);

// Every `step`-th row of the first `stop`.
template <typename Data>
PointSet<Data> some_rows(PointSet<Data> rows, Size stop, Size step);

// Writes rows about the origin on axes, rows of coordinates one after the other, and their squared
// norms. Without axes, the features are the coordinates.
template <typename Data>
void place_rows(const PointSet<Data>& rows, const Origin& origin, const MatrixView<float>* axes,
                float* coordinates, double* squared_norms, ThreadTeam& team);

// What the search for axes asks of rows, of which each process has its own.
class CentredRows {
public:
  virtual ~CentredRows() = default;

  virtual Size samples() const = 0; // of all processes
  virtual Size features() const = 0;

  // The covariance, up to a factor: features x features.
  virtual std::vector<double> covariance() = 0;
  // That of every `step`-th row, times each of some axes, which lie one after the other.
  virtual void covariance_times(const std::vector<double>& axes, Size step, double* products) = 0;
  // Own rows on axes: rows x axes.
  virtual std::vector<double> times(const std::vector<double>& axes) = 0;
};

// Own rows of so many, about the mean of all, in the data's precision.
template <typename Data>
std::unique_ptr<CentredRows> centred_rows(const PointSet<Data>& own, Size samples,
                                          Communicator& processes, ThreadTeam& team);

// The rows of a sparse matrix.
template <typename Data>
std::unique_ptr<CentredRows> centred_rows(const CsrView<Data>& rows, Size features,
                                          ThreadTeam& team);

// A sample of rows, in float whatever the data are. Its mean is written.
template <typename Data>
std::unique_ptr<CentredRows> centred_sample(const PointSet<Data>& sample, Origin& origin,
                                            ThreadTeam& team);

} // namespace acctsne
