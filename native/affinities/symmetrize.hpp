// Step 2, second half: joint probabilities P = (C + C^T) / sum from the conditional ones.
#pragma once

#include "acctsne/csr.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "affinities/conditional.hpp"
#include "affinities/joint_rows.hpp"
#include "affinities/merged_row.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace acctsne {

// The rows of P, made from C while they are read. P is symmetric and sums to 1. C must outlive
// them; beside it they hold 10 bytes (18 in double precision) of the edges that are transposed at a
// time, a sixteenth of all or `group_edges`, whichever is more.
template <typename Real>
class SymmetrizedRows final : public JointRows<Real> {
public:
  // A C of no more edges than these is transposed in one go, which is fastest. At 10 bytes each
  // they take 168 MB in float.
  static constexpr EdgeId kGroupEdges = EdgeId{1} << 24;

  SymmetrizedRows(const Conditional<Real>& conditional, ThreadTeam& team,
                  EdgeId group_edges = kGroupEdges);

  Size rows() const override { return C_.rows; }
  void for_rows(ThreadTeam& team, const typename JointRows<Real>::Visit& visit) override;

private:
  // Blocks of columns of C that are transposed together.
  struct Group {
    Size begin;
    Size end;
    EdgeId edges;
  };
  // Of one worker: rows of C^T, where each begins, and one row of P.
  struct Scratch {
    std::vector<TransposedEdge<Real>> edges;
    std::vector<EdgeId> starts;
    MergedRow<Real> row;
  };

  // Rows of P, one after the other.
  struct KeptBlock {
    std::vector<std::size_t> ends;
    std::vector<PointId> columns;
    std::vector<Real> values;

    void add(const JointRow<Real>& row) {
      columns.insert(columns.end(), row.columns.begin(), row.columns.end());
      values.insert(values.end(), row.values.begin(), row.values.end());
      ends.push_back(columns.size());
    }
  };

  Size block_columns() const { return Size{1} << block_bits_; }
  void count_edges(ThreadTeam& team);
  void make_groups(EdgeId most);
  double conditional_sum(ThreadTeam& team) const;
  double entries(ThreadTeam& team); // that P stores
  void gather(std::size_t group, ThreadTeam& team);
  void transpose(Size block, Scratch& scratch) const;
  void visit_kept(Size block, const typename JointRows<Real>::Visit& visit, int worker) const;

  Conditional<Real> C_;
  int block_bits_;
  Size blocks_;
  Size chunk_rows_;
  double scale_ = 1;           // of the sum of two conditional probabilities
  std::vector<EdgeId> counts_; // edges by chunk of rows and block of columns
  std::vector<Group> groups_;
  std::vector<std::uint32_t> cursors_; // how many edges of each row were gathered

  // The edges of the group that was gathered last, in the order of their column's block, and of
  // their row within it.
  std::size_t gathered_ = static_cast<std::size_t>(-1);
  std::unique_ptr<TransposedEdge<Real>[]> edges_;
  std::unique_ptr<std::uint16_t[]> columns_; // of C, counted from the block's first
  std::vector<EdgeId> starts_;               // of each block

  std::vector<KeptBlock> kept_; // of each block, if P is small
  bool all_kept_ = false;
};

// Reads P into a matrix.
template <typename Real>
Csr<Real> collect(JointRows<Real>& P, ThreadTeam& team);

} // namespace acctsne
