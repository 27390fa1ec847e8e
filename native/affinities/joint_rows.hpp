// P row by row, whatever it is made of, so that it can be read into another form without being
// there as a matrix.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/csr.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <functional>
#include <span>

namespace acctsne {

template <typename Real>
struct JointRow {
  Size row;
  std::span<const PointId> columns; // ascending
  std::span<const Real> values;
};

// Rows of P that one thread is given one after the other: what is summed over them is the same at
// any number of threads.
inline constexpr Size kJointBlockRows = 256;

template <typename Real>
class JointRows {
public:
  using Visit = std::function<void(const JointRow<Real>& row, int worker)>;

  virtual ~JointRows() = default;
  virtual Size rows() const = 0; // of all processes
  // Calls visit with each own row once, for the length of the call. Blocks of rows come in any
  // order and on any thread.
  virtual void for_rows(ThreadTeam& team, const Visit& visit) = 0;
};

// The own rows of a matrix that is there. It must outlive them.
template <typename Real>
class MatrixRows final : public JointRows<Real> {
public:
  explicit MatrixRows(const CsrView<Real>& P, const Communicator& processes = one_process)
      : P_(P), own_(rows_of(processes.rank(), processes.size(), P.rows())) {}

  Size rows() const override { return P_.rows(); }

  void for_rows(ThreadTeam& team, const typename JointRows<Real>::Visit& visit) override {
    parallel_for(team, own_, kJointBlockRows, [&](Size begin, Size end, int worker) {
      for (Size i = begin; i < end; ++i) {
        const auto first = static_cast<std::size_t>(P_.offsets[at(i)]);
        const auto last = static_cast<std::size_t>(P_.offsets[at(i + 1)]);
        visit({i, P_.columns.subspan(first, last - first), P_.values.subspan(first, last - first)},
              worker);
      }
    });
  }

private:
  CsrView<Real> P_;
  Rows own_;
};

} // namespace acctsne
