// Step 2, second half, over several processes: each holds its own rows of C and makes its own rows
// of P.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "affinities/conditional.hpp"
#include "affinities/joint_rows.hpp"
#include "affinities/merged_row.hpp"

#include <cstdint>
#include <vector>

namespace acctsne {

// Own rows of P, with the bits that SymmetrizedRows has. C has own rows, and must outlive this. A
// small part of the edges of C^T is here at a time; each time that rows are read they are sent
// again.
template <typename Real>
class ExchangedRows final : public JointRows<Real> {
public:
  // `rows` are those of all processes.
  ExchangedRows(const Conditional<Real>& own_rows, Size rows, Communicator& processes,
                ThreadTeam& team);

  Size rows() const override { return rows_; }
  void for_rows(ThreadTeam& team, const typename JointRows<Real>::Visit& visit) override;

private:
  // An edge on its way to the process that owns its column.
  struct Edge {
    PointId row;
    PointId column;
    Real value;
  };

  // What leaves of the rows of C: a run of each row to each process in each group.
  struct Runs {
    std::vector<std::uint32_t> cursors; // rows x processes: where the next run begins
    std::vector<std::uint32_t> counts;  // chunks of rows x processes x groups: edges
  };

  Rows slice_of(int rank, Size group) const;
  Runs first_runs(ThreadTeam& team) const;
  std::vector<Edge> fetch(Size group, Runs& runs, ThreadTeam& team);
  double conditional_sum(ThreadTeam& team);
  double entries(ThreadTeam& team); // that P stores

  Conditional<Real> C_;
  Size rows_;
  Communicator& processes_;
  Rows own_;
  double scale_ = 1; // of the sum of two conditional probabilities
};

} // namespace acctsne
