// P in the form that the attraction reads: rows and columns relabelled, columns in 16 bits where
// they fit, values in half precision if that is wanted. It is the only form in which P outlives the
// beginning of a run.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/large_array.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "affinities/joint_rows.hpp"
#include "kernels/attractive.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace acctsne {

template <typename Real>
class Edges {
public:
  // Of own points, if there are several processes; these must outlive the edges.
  explicit Edges(Communicator& processes = one_process) : processes_(&processes) {}

  // Takes the edges of P with its points relabelled: new point i is row order[i] of P. The order
  // must leave each row with its process. `half` asks for half precision, which is heeded where the
  // CPU converts it and Real is float. Returns sum_j p_ij of each row of P, in P's order.
  std::vector<double> build(JointRows<Real>& P, std::span<const PointId> order, bool half,
                            ThreadTeam& team);
  // Relabels again: point i becomes row order[i] of P, and its edges go to the process that owns
  // it. Leaves the bits of a build with this order.
  void relabel(std::span<const PointId> order, ThreadTeam& team);

  Size rows() const { return static_cast<Size>(order_.size()); }
  // sum_ij p_ij log(p_ij), the part of KL that does not depend on the layout. Of P as it was given.
  double negative_entropy() const { return negative_entropy_; }
  // sum_ij p_ij log(max_k p_ik / p_ij): how far log p lies below the largest of its row, on
  // average.
  double mean_drop() const { return mean_drop_; }
  EdgeView<Real> view() const;

private:
  // Rows of near or of far edges.
  template <typename Column>
  struct Part {
    std::vector<EdgeId> offsets;
    LargeArray<Column> columns;
    LargeArray<std::byte> values; // of Real, or halves

    explicit Part(Size rows) : offsets(at(rows) + 1, 0) {}
    // For the edges of all rows, of which offsets[i + 1] has the number in row i.
    void make_room(std::size_t value_bytes, int threads);
    template <typename Value>
    Value* values_of() const {
      return reinterpret_cast<Value*>(values.get());
    }
  };
  struct Store {
    Part<std::uint16_t> near;
    Part<PointId> far;
    EdgeId lanes; // of the vectors that rows are padded to

    explicit Store(Size rows = 0);
    Size rows() const { return static_cast<Size>(near.offsets.size()) - 1; }
    void count_row(Size i, std::span<const PointId> columns);
    void set_counts(Size i, EdgeId near_edges, EdgeId far_edges);
    void make_room(std::size_t value_bytes, int threads);
    template <typename Value>
    void put_row(Size i, std::span<const PointId> columns, const Value* values);
  };
  // The edges of one row in the order of P, under the new labels.
  template <typename Value>
  struct Row {
    std::vector<PointId> columns;
    std::vector<Value> values;
  };

  static void take_row(const JointRow<Real>& given, const std::vector<PointId>& label,
                       Row<Real>& row);
  void join_parts(Size i, const std::vector<PointId>& label, std::vector<PointId>& columns) const;
  template <typename Value>
  void merge_parts(Size i, const std::vector<PointId>& label, Row<Value>& row) const;
  template <typename Value>
  Store relabelled(const std::vector<PointId>& label, ThreadTeam& team) const;
  template <typename Value>
  Store exchanged(const std::vector<PointId>& label, ThreadTeam& team) const;
  template <typename Value>
  void send_rows(Rows leaving, const std::vector<PointId>& label, Store& next,
                 ThreadTeam& team) const;
  Rows own() const { return rows_of(processes_->rank(), processes_->size(), rows()); }

  Communicator* processes_;
  std::vector<PointId> order_; // the row of P that each point is
  Real half_scale_ = 0;        // 0 if values are not halves
  double negative_entropy_ = 0;
  double mean_drop_ = 0;
  Store edges_;
};

} // namespace acctsne
