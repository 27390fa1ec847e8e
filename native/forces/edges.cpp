// P in the form that the attraction reads.
//
// Rows come in blocks of kEdgeBlockRows. A block has a window of 65536 columns around it; edges
// into the window ("near") store their column in 16 bits, counted from the window's start, the rest
// ("far") in 32. After relabelling by Morton order nearly all edges are near. Each row's part is
// padded with edges of weight zero, from the point to itself, to a whole number of vectors.
//
// Half precision keeps 11 bits of each p, scaled so that the largest is near the format's upper
// end: p down to 4e-9 of the largest keeps them all (docs/tuning.md has the exact KL with and
// without).
//
// 1. Count each row's near and far edges; running sums give the offsets.
// 2. Fill, row by row. Both parts of a row are in the order of P, whatever the labels were before:
//    that decides the order of sums, so that a run which goes on from a file ends with the same
//    bits. To relabel, the two parts are merged again.
//
// Several processes have the edges of their own points each, and know of no edges of the others.
// When points are relabelled, edges go where their points go, a part of them at a time.
#include "forces/edges.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace acctsne {
namespace {

// The power of two that brings the largest value to between 2^14 and 2^15, below half precision's
// 65504; of a value that is next to nothing, as far as Real goes.
template <typename Real>
Real half_scale(Real largest) {
  constexpr auto kMost = static_cast<Real>(std::numeric_limits<Real>::max_exponent - 1);
  return largest > 0 ? std::exp2(std::min(14 - std::floor(std::log2(largest)), kMost)) : Real(1);
}

// The label of each row of P.
std::vector<PointId> labels(std::span<const PointId> order, ThreadTeam& team) {
  std::vector<PointId> label(order.size());
  parallel_for(team, static_cast<Size>(order.size()), 16384, [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      label[at(order[at(i)])] = static_cast<PointId>(i);
    }
  });
  return label;
}

Size window_of(Size row, Size rows) {
  return edge_window(row / kEdgeBlockRows * kEdgeBlockRows, rows);
}

bool is_near(PointId column, Size window) {
  return column >= window && column < window + kEdgeWindow;
}

EdgeId whole_vectors(EdgeId edges, EdgeId lanes) {
  return chunk_count(edges, lanes) * lanes;
}

// The end of a row's edges before its padding.
template <typename Column>
EdgeId end_of_edges(const Column* columns, EdgeId begin, EdgeId end, Size itself) {
  while (end > begin && columns[end - 1] == itself) {
    --end;
  }
  return end;
}

} // namespace

template <typename Real>
std::vector<double> Edges<Real>::build(JointRows<Real>& P, std::span<const PointId> order,
                                       bool half, ThreadTeam& team) {
  const std::vector<PointId> label = labels(order, team);
  const AttractiveKernels<Real>& kernel = kernels().attractive.of<Real>();
  std::vector<Row<Real>> rows(at(team.size()));
  // Of each block of rows: its negative entropy, its largest value, and sum_ij p_ij log(max_k
  // p_ik).
  RowSums blocks;
  blocks.start(P.rows(), kJointBlockRows, 3);
  std::vector<double> row_sums(label.size(), 0);
  Store next(P.rows());
  P.for_rows(team, [&](const JointRow<Real>& given, int worker) {
    Row<Real>& row = rows[at(worker)];
    take_row(given, label, row);
    next.count_row(label[at(given.row)], row.columns);
    double* block = blocks.of_row(given.row);
    block[0] +=
        kernel.negative_entropy(given.values.data(), static_cast<Size>(given.values.size()));
    double sum = 0;
    Real most = 0;
    for (const Real value : given.values) {
      most = std::max(most, value);
      sum += static_cast<double>(value);
    }
    block[1] = std::max(block[1], static_cast<double>(most));
    block[2] += most > 0 ? sum * std::log(static_cast<double>(most)) : 0.0;
    row_sums[at(given.row)] = sum;
  });
  blocks.gather(*processes_);
  gather_rows(*processes_, row_sums.data(), P.rows(), 1);
  negative_entropy_ = 0;
  Real largest = 0;
  double log_largest = 0;
  blocks.for_chunks([&](const double* block) {
    negative_entropy_ += block[0];
    largest = std::max(largest, static_cast<Real>(block[1]));
    log_largest += block[2];
  });
  mean_drop_ = log_largest - negative_entropy_;
  // The sum of two conditional probabilities may overflow where each of them did not.
  if (!std::isfinite(largest)) {
    throw std::domain_error("P is not finite");
  }

  const auto to_half = half ? kernel.to_half : nullptr;
  half_scale_ = to_half == nullptr ? Real(0) : half_scale(largest);
  next.make_room(to_half != nullptr ? sizeof(std::uint16_t) : sizeof(Real), team.size());
  std::vector<std::vector<std::uint16_t>> halves(rows.size());
  P.for_rows(team, [&](const JointRow<Real>& given, int worker) {
    Row<Real>& row = rows[at(worker)];
    take_row(given, label, row);
    const Size i = label[at(given.row)];
    if (to_half != nullptr) {
      std::vector<std::uint16_t>& converted = halves[at(worker)];
      const auto edges = static_cast<EdgeId>(row.values.size());
      row.values.resize(at(whole_vectors(edges, kernel.edge_lanes)));
      converted.resize(row.values.size());
      to_half(row.values.data(), static_cast<Size>(row.values.size()), half_scale_,
              converted.data());
      next.put_row(i, row.columns, converted.data());
    } else {
      next.put_row(i, row.columns, row.values.data());
    }
  });
  order_.assign(order.begin(), order.end());
  edges_ = std::move(next);
  return row_sums;
}

template <typename Real>
void Edges<Real>::relabel(std::span<const PointId> order, ThreadTeam& team) {
  std::vector<PointId> label = labels(order, team);
  // From the labels of the rows of P to those of the present points.
  std::vector<PointId> of_points(label.size());
  parallel_for(team, rows(), 16384, [&](Size begin, Size end) {
    for (auto i = static_cast<std::size_t>(begin); i < at(end); ++i) {
      of_points[i] = label[at(order_[i])];
    }
  });
  const bool halves = half_scale_ != Real(0);
  if (processes_->size() == 1) {
    edges_ =
        halves ? relabelled<std::uint16_t>(of_points, team) : relabelled<Real>(of_points, team);
  } else {
    edges_ = halves ? exchanged<std::uint16_t>(of_points, team) : exchanged<Real>(of_points, team);
  }
  order_.assign(order.begin(), order.end());
}

// The edges under the labels that are given for each present point.
template <typename Real>
template <typename Value>
typename Edges<Real>::Store Edges<Real>::relabelled(const std::vector<PointId>& label,
                                                    ThreadTeam& team) const {
  std::vector<Row<Value>> scratch(at(team.size()));
  const auto for_rows = [&](auto&& visit) {
    parallel_for(team, rows(), kEdgeBlockRows, [&](Size begin, Size end, int worker) {
      for (Size i = begin; i < end; ++i) {
        visit(i, label[at(i)], scratch[at(worker)]);
      }
    });
  };
  Store next(rows());
  for_rows([&](Size i, Size to, Row<Value>& row) {
    join_parts(i, label, row.columns);
    next.count_row(to, row.columns);
  });
  next.make_room(sizeof(Value), team.size());
  for_rows([&](Size i, Size to, Row<Value>& row) {
    merge_parts(i, label, row);
    next.put_row(to, row.columns, row.values.data());
  });
  return next;
}

// The same by several processes: what this one has of the edges under the new labels.
template <typename Real>
template <typename Value>
typename Edges<Real>::Store Edges<Real>::exchanged(const std::vector<PointId>& label,
                                                   ThreadTeam& team) const {
  // How many edges a point has under its new label.
  struct Count {
    PointId point;
    PointId near_edges;
    PointId far_edges;
  };
  const Rows mine = own();
  const Owners owners(processes_->size(), rows());
  std::vector<Size> ends(at(processes_->size()), 0);
  for (Size i = mine.begin; i < mine.end; ++i) {
    ++ends[owners.of(label[at(i)])];
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Size> place(at(mine.end - mine.begin));
  std::vector<Size> next_place(ends.size(), 0);
  std::copy(ends.begin(), ends.end() - 1, next_place.begin() + 1);
  for (Size i = mine.begin; i < mine.end; ++i) {
    place[at(i - mine.begin)] = next_place[owners.of(label[at(i)])]++;
  }
  std::vector<Count> counts(place.size());
  parallel_for(team, mine, kEdgeBlockRows, [&](Size begin, Size end) {
    std::vector<PointId> columns;
    for (Size i = begin; i < end; ++i) {
      const PointId to = label[at(i)];
      join_parts(i, label, columns);
      const Size window = window_of(to, rows());
      const auto near = static_cast<PointId>(std::ranges::count_if(
          columns, [window](PointId column) { return is_near(column, window); }));
      counts[at(place[at(i - mine.begin)])] = {to, near,
                                               static_cast<PointId>(columns.size()) - near};
    }
  });
  Store next(rows());
  for (const Count& count : deliver(*processes_, counts, ends)) {
    next.set_counts(count.point, count.near_edges, count.far_edges);
  }
  next.make_room(sizeof(Value), team.size());
  // So that what is on its way takes little memory beside the edges themselves.
  constexpr Size kParts = 64;
  const Size points = mine.end - mine.begin;
  for (Size part = 0; part < kParts; ++part) {
    const Rows leaving{mine.begin + points * part / kParts,
                       mine.begin + points * (part + 1) / kParts};
    send_rows<Value>(leaving, label, next, team);
  }
  return next;
}

// Sends the edges of present points to the owners of their new labels and takes those that come.
template <typename Real>
template <typename Value>
void Edges<Real>::send_rows(Rows leaving, const std::vector<PointId>& label, Store& next,
                            ThreadTeam& team) const {
  struct Head {
    PointId point;
    PointId edges;
  };
  const auto processes = static_cast<std::size_t>(processes_->size());
  const Owners owners(processes_->size(), rows());
  const auto count = static_cast<std::size_t>(leaving.end - leaving.begin);
  std::vector<Row<Value>> merged(count);
  parallel_for(team, leaving, kEdgeBlockRows, [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      merge_parts(i, label, merged[at(i - leaving.begin)]);
    }
  });
  std::vector<std::vector<std::size_t>> to(processes); // rows by who gets them
  for (std::size_t row = 0; row < count; ++row) {
    to[owners.of(label[at(leaving.begin) + row])].push_back(row);
  }
  const std::size_t edges_leaving =
      std::transform_reduce(merged.begin(), merged.end(), std::size_t{0}, std::plus<>{},
                            [](const Row<Value>& row) { return row.columns.size(); });
  std::vector<Head> heads;
  std::vector<PointId> columns;
  std::vector<Value> values;
  heads.reserve(count);
  columns.reserve(edges_leaving);
  values.reserve(edges_leaving);
  std::vector<Size> head_ends;
  std::vector<Size> edge_ends;
  for (const std::vector<std::size_t>& theirs : to) {
    for (const std::size_t row : theirs) {
      const Row<Value>& edges = merged[row];
      heads.push_back({label[at(leaving.begin) + row], static_cast<PointId>(edges.columns.size())});
      columns.insert(columns.end(), edges.columns.begin(), edges.columns.end());
      const auto used = static_cast<std::ptrdiff_t>(edges.columns.size());
      values.insert(values.end(), edges.values.begin(), edges.values.begin() + used);
    }
    head_ends.push_back(static_cast<Size>(heads.size()));
    edge_ends.push_back(static_cast<Size>(columns.size()));
  }
  merged = {};
  heads = deliver(*processes_, heads, head_ends);
  columns = deliver(*processes_, columns, edge_ends);
  values = deliver(*processes_, values, edge_ends);
  std::vector<std::size_t> starts(heads.size());
  std::size_t start = 0;
  for (std::size_t row = 0; row < heads.size(); ++row) {
    starts[row] = start;
    start += at(heads[row].edges);
  }
  parallel_for(team, static_cast<Size>(heads.size()), kEdgeBlockRows, [&](Size begin, Size end) {
    for (auto row = static_cast<std::size_t>(begin); row < at(end); ++row) {
      const std::span<const PointId> theirs(columns.data() + starts[row], at(heads[row].edges));
      next.put_row(heads[row].point, theirs, values.data() + starts[row]);
    }
  });
}

// A row of P under new labels. An edge from the point to itself, which moves nothing, is left out.
template <typename Real>
void Edges<Real>::take_row(const JointRow<Real>& given, const std::vector<PointId>& label,
                           Row<Real>& row) {
  row.columns.resize(given.columns.size());
  row.values.resize(given.columns.size());
  std::size_t count = 0;
  for (std::size_t e = 0; e < given.columns.size(); ++e) {
    row.columns[count] = label[at(given.columns[e])];
    row.values[count] = given.values[e];
    count += given.columns[e] != given.row;
  }
  row.columns.resize(count);
}

// The columns of a present point's edges under new labels, in any order.
template <typename Real>
void Edges<Real>::join_parts(Size i, const std::vector<PointId>& label,
                             std::vector<PointId>& columns) const {
  const std::size_t point = at(i);
  const auto& near = edges_.near;
  const auto& far = edges_.far;
  const Size window = window_of(i, rows());
  const EdgeId near_begin = near.offsets[point];
  const EdgeId far_begin = far.offsets[point];
  const EdgeId near_end =
      end_of_edges(near.columns.get(), near_begin, near.offsets[point + 1], i - window);
  const EdgeId far_end = end_of_edges(far.columns.get(), far_begin, far.offsets[point + 1], i);
  columns.resize(at(near_end - near_begin + far_end - far_begin));
  PointId* to = columns.data();
  for (EdgeId e = near_begin; e < near_end; ++e) {
    *to++ = label[at(window + near.columns[at(e)])];
  }
  for (EdgeId e = far_begin; e < far_end; ++e) {
    *to++ = label[at(far.columns[at(e)])];
  }
}

// The edges of a present point in the order of P, under new labels.
template <typename Real>
template <typename Value>
void Edges<Real>::merge_parts(Size i, const std::vector<PointId>& label, Row<Value>& row) const {
  const std::size_t point = at(i);
  const auto& near = edges_.near;
  const auto& far = edges_.far;
  const Size window = window_of(i, rows());
  EdgeId n = near.offsets[point];
  EdgeId f = far.offsets[point];
  const EdgeId near_end = end_of_edges(near.columns.get(), n, near.offsets[point + 1], i - window);
  const EdgeId far_end = end_of_edges(far.columns.get(), f, far.offsets[point + 1], i);
  row.columns.resize(at(near_end - n + far_end - f));
  row.values.resize(row.columns.size());
  PointId* columns = row.columns.data();
  Value* values = row.values.data();
  const auto take_near = [&] {
    *columns++ = label[at(window + near.columns[at(n)])];
    *values++ = near.template values_of<Value>()[n++];
  };
  const auto take_far = [&] {
    *columns++ = label[at(far.columns[at(f)])];
    *values++ = far.template values_of<Value>()[f++];
  };
  while (n < near_end && f < far_end) {
    const auto near_point = at(window + near.columns[at(n)]);
    const auto far_point = static_cast<std::size_t>(far.columns[at(f)]);
    if (order_[near_point] < order_[far_point]) {
      take_near();
    } else {
      take_far();
    }
  }
  while (n < near_end) {
    take_near();
  }
  while (f < far_end) {
    take_far();
  }
}

template <typename Real>
Edges<Real>::Store::Store(Size rows)
    : near(rows), far(rows), lanes(kernels().attractive.of<Real>().edge_lanes) {}

template <typename Real>
void Edges<Real>::Store::count_row(Size i, std::span<const PointId> columns) {
  const Size window = window_of(i, rows());
  EdgeId count = 0;
  for (const PointId column : columns) {
    count += is_near(column, window);
  }
  set_counts(i, count, static_cast<EdgeId>(columns.size()) - count);
}

template <typename Real>
void Edges<Real>::Store::set_counts(Size i, EdgeId near_edges, EdgeId far_edges) {
  near.offsets[at(i + 1)] = whole_vectors(near_edges, lanes);
  far.offsets[at(i + 1)] = whole_vectors(far_edges, lanes);
}

template <typename Real>
template <typename Value>
void Edges<Real>::Store::put_row(Size i, std::span<const PointId> columns, const Value* values) {
  const std::size_t point = at(i);
  const Size window = window_of(i, rows());
  std::uint16_t* near_columns = near.columns.get();
  PointId* far_columns = far.columns.get();
  Value* near_values = near.template values_of<Value>();
  Value* far_values = far.template values_of<Value>();
  EdgeId n = near.offsets[point];
  EdgeId f = far.offsets[point];
  for (std::size_t e = 0; e < columns.size(); ++e) {
    if (is_near(columns[e], window)) {
      near_columns[n] = static_cast<std::uint16_t>(columns[e] - window);
      near_values[n++] = values[e];
    } else {
      far_columns[f] = columns[e];
      far_values[f++] = values[e];
    }
  }
  const EdgeId near_end = near.offsets[point + 1];
  const EdgeId far_end = far.offsets[point + 1];
  std::fill(near_columns + n, near_columns + near_end, static_cast<std::uint16_t>(i - window));
  std::fill(near_values + n, near_values + near_end, Value(0));
  std::fill(far_columns + f, far_columns + far_end, static_cast<PointId>(i));
  std::fill(far_values + f, far_values + far_end, Value(0));
}

template <typename Real>
void Edges<Real>::Store::make_room(std::size_t value_bytes, int threads) {
  near.make_room(value_bytes, threads);
  far.make_room(value_bytes, threads);
}

template <typename Real>
template <typename Column>
void Edges<Real>::Part<Column>::make_room(std::size_t value_bytes, int threads) {
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  const auto edges = static_cast<std::size_t>(offsets.back());
  // Not cleared: every row is written.
  columns = make_large_array<Column>(edges, threads);
  values = make_large_array<std::byte>(edges * value_bytes, threads);
}

template <typename Real>
EdgeView<Real> Edges<Real>::view() const {
  const auto& near = edges_.near;
  const auto& far = edges_.far;
  return {
      .rows = rows(),
      .half_scale = half_scale_,
      .near_offsets = near.offsets.data(),
      .near_columns = near.columns.get(),
      .near_values = near.values.get(),
      .far_offsets = far.offsets.data(),
      .far_columns = far.columns.get(),
      .far_values = far.values.get(),
  };
}

template class Edges<float>;
template class Edges<double>;

} // namespace acctsne
