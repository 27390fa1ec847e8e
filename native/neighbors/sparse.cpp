// Step 1, KNN, of sparse rows, by an inverted index.
//
// The product of two rows has terms only for the columns that both have. So points are cut into
// blocks, and each block is kept by columns: a list of (row, value) for each. A query walks through
// its own columns and adds each list, times its value, to sums of the block's rows, which stay in
// the cache that is nearest to the core. That takes as many multiply-adds as there are terms, about
// nnz^2 / features for rows among themselves where columns are filled alike, and half of that here:
// a product serves both of its rows.
//
// Rows are offered to both lists by one thread, which has both blocks to itself: rounds pair each
// block with one other, as in a tournament in which each plays each. The k nearest are the same in
// whatever order they are offered, ties go to the lower index; and the terms of a product are
// added by ascending column, however rows are cut into blocks.
#include "neighbors/sparse.hpp"

#include "neighbors/points.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

namespace acctsne {
namespace {

// Rows in a block, at least: their sums fit the nearest cache, and lists are long enough for a loop
// to pay.
constexpr Size kFewestBlockRows = 1024;
constexpr Size kMostBlockRows = Size{1} << 16; // 16 bits name a row
constexpr Size kFewestBlocks = 32;             // for the threads to share
constexpr Size kQueriesPerChunk = 64;

// Where features are many and rows short, as with hashed words, so many rows that a block's index
// of all columns takes no more than its entries.
template <typename Data>
Size block_rows(const CsrView<Data>& points, Size features) {
  const auto entries = static_cast<double>(points.columns.size());
  const double row_bytes =
      entries / static_cast<double>(points.rows()) * (sizeof(std::uint16_t) + sizeof(Data));
  const double index_bytes = static_cast<double>(features) * sizeof(std::uint32_t);
  const double wanted =
      std::min(index_bytes / std::max(row_bytes, 1.0), static_cast<double>(kMostBlockRows));
  const Size most = std::clamp(points.rows() / kFewestBlocks, kFewestBlockRows, kMostBlockRows);
  return std::clamp(static_cast<Size>(wanted), kFewestBlockRows, most);
}

// Lists that are asked for before they are needed.
constexpr EdgeId kListsAhead = 6;

// Where the square of a distance is less than so much of the squares of both lengths, their
// difference has lost digits. Rounding leaves 1e-15 or so of the squares: twelve digits remain.
constexpr double kCancelled = 1e-3;

// The squared distance of rows i and j is square_i + square_j - 2 (weight_i weight_j x_i.x_j -
// offset_i offset_j): weights scale rows to length 1, offsets take off their means.
template <typename Data>
class MetricRows {
public:
  MetricRows(const CsrView<Data>& matrix, Size features, SparseMetric metric, ThreadTeam& team)
      : matrix_(matrix), squares_(at(matrix.rows())), weights_(squares_.size(), 1.0),
        offsets_(squares_.size()) {
    parallel_for(team, matrix.rows(), 1024, [&](Size begin, Size end) {
      for (Size i = begin; i < end; ++i) {
        measure(at(i), features, metric);
      }
    });
  }

  Size rows() const { return matrix_.rows(); }
  EdgeId begin(Size i) const { return matrix_.offsets[at(i)]; }
  EdgeId end(Size i) const { return begin(i + 1); }
  PointId column(EdgeId e) const { return matrix_.columns[at(e)]; }
  double value(EdgeId e) const { return static_cast<double>(matrix_.values[at(e)]); }
  Data raw_value(EdgeId e) const { return matrix_.values[at(e)]; }
  const double* squares() const { return squares_.data(); }
  const double* weights() const { return weights_.data(); }
  const double* offsets() const { return offsets_.data(); }

private:
  void measure(std::size_t i, Size features, SparseMetric metric) {
    double sum = 0;
    double square = 0;
    for (EdgeId e = begin(static_cast<Size>(i)); e < end(static_cast<Size>(i)); ++e) {
      sum += value(e);
      square += value(e) * value(e);
    }
    if (metric == SparseMetric::euclidean) {
      squares_[i] = square;
      return;
    }
    const double offset =
        metric == SparseMetric::correlation ? sum / std::sqrt(static_cast<double>(features)) : 0;
    const double length = std::sqrt(std::max(0.0, square - offset * offset));
    squares_[i] = 1;
    weights_[i] = length > 0 ? 1 / length : 0;
    offsets_[i] = length > 0 ? offset / length : 0;
  }

  CsrView<Data> matrix_;
  std::vector<double> squares_;
  std::vector<double> weights_;
  std::vector<double> offsets_;
};

// Rows [first, first + count) by columns.
template <typename Data>
class Block {
public:
  Block(const MetricRows<Data>& rows, Size first, Size count, Size features)
      : first_(first), count_(count), starts_(at(features) + 1) {
    const EdgeId begin = rows.begin(first);
    const EdgeId end = rows.end(first + count - 1);
    if (end - begin > std::numeric_limits<std::uint32_t>::max()) {
      throw std::length_error("a block of sparse rows has too many entries");
    }
    local_rows_.resize(at(end - begin));
    values_.resize(local_rows_.size());
    for (EdgeId e = begin; e < end; ++e) {
      ++starts_[at(rows.column(e)) + 1];
    }
    for (std::size_t c = 1; c < starts_.size(); ++c) {
      starts_[c] += starts_[c - 1];
    }
    // While filled, starts_[c] is where the next entry of column c goes.
    for (Size i = 0; i < count; ++i) {
      for (EdgeId e = rows.begin(first + i); e < rows.end(first + i); ++e) {
        const std::uint32_t entry = starts_[at(rows.column(e))]++;
        local_rows_[entry] = static_cast<std::uint16_t>(i);
        values_[entry] = rows.raw_value(e);
      }
    }
    std::rotate(starts_.rbegin(), starts_.rbegin() + 1, starts_.rend());
    starts_[0] = 0;
  }

  Size first() const { return first_; }
  Size count() const { return count_; }

  // sums[i] = the product of a query with row i of the block.
  void products(const MetricRows<Data>& queries, Size query, double* __restrict sums) const {
    std::fill_n(sums, count_, 0.0);
    const std::uint16_t* rows = local_rows_.data();
    const Data* values = values_.data();
    const EdgeId end = queries.end(query);
    for (EdgeId e = queries.begin(query); e < end; ++e) {
      if (e + kListsAhead < end) {
        prefetch(queries.column(e + kListsAhead));
      }
      const double x = queries.value(e);
      const auto column = static_cast<std::size_t>(queries.column(e));
      const std::uint32_t list_end = starts_[column + 1];
      for (std::uint32_t entry = starts_[column]; entry < list_end; ++entry) {
        sums[rows[entry]] += x * static_cast<double>(values[entry]);
      }
    }
  }

private:
  // Lists are short and lie anywhere in the block, which no cache near the core holds: what is
  // waited for is their first lines, unless they are asked for in time.
  void prefetch(PointId column) const {
    constexpr std::size_t kValuesPerLine = 64 / sizeof(Data);
    const std::uint32_t entry = starts_[at(column)];
    __builtin_prefetch(local_rows_.data() + entry);
    __builtin_prefetch(values_.data() + entry);
    __builtin_prefetch(values_.data() + entry + kValuesPerLine);
  }

  Size first_;
  Size count_;
  std::vector<std::uint32_t> starts_; // features + 1
  std::vector<std::uint16_t> local_rows_;
  std::vector<Data> values_;
};

template <typename Data>
class SparseSearch {
public:
  SparseSearch(const SparseRequest<Data>& request, ThreadTeam& team)
      : request_(request), points_(request.points, request.features, request.metric, team) {
    const Size rows = block_rows(request.points, request.features);
    scratch_.assign(at(team.size()), std::vector<double>(at(kQueriesPerChunk * rows)));
    const Size blocks = chunk_count(points_.rows(), rows);
    std::vector<std::unique_ptr<Block<Data>>> made(at(blocks));
    parallel_for(team, blocks, 1, [&](Size b, Size) {
      const Size first = b * rows;
      made[at(b)] = std::make_unique<Block<Data>>(
          points_, first, std::min(rows, points_.rows() - first), request.features);
    });
    blocks_ = std::move(made);
  }

  void among_themselves(ThreadTeam& team) {
    start_lists(points_.rows());
    const auto blocks = static_cast<Size>(blocks_.size());
    for_pairs(blocks, blocks, team, [&](Size i, int w) { visit(i, i, team, w); });
    // The last place is fixed, the others move round; with an odd number nobody sits in it.
    const Size seats = blocks + blocks % 2;
    for (Size round = 0; round + 1 < seats; ++round) {
      const auto seated = [&](Size seat) {
        return seat == seats - 1 ? seat : (seat + round) % (seats - 1);
      };
      for_pairs(seats / 2, blocks, team, [&](Size pair, int w) {
        const Size a = seated(pair);
        const Size b = seated(seats - 1 - pair);
        if (a < blocks && b < blocks) {
          visit(std::min(a, b), std::max(a, b), team, w);
        }
      });
    }
    parallel_for(team, points_.rows(), kQueriesPerChunk, [&](Size begin, Size end) {
      for (Size i = begin; i < end; ++i) {
        finish(points_, i, lists_[at(i)]);
      }
    });
  }

  void of_queries(const MetricRows<Data>& queries, ThreadTeam& team) {
    start_lists(queries.rows());
    team.for_chunks(chunk_count(queries.rows(), kQueriesPerChunk), [&](Size chunk, int w) {
      const Size begin = chunk * kQueriesPerChunk;
      const Size end = std::min(begin + kQueriesPerChunk, queries.rows());
      for (const auto& block : blocks_) {
        if (team.should_stop(w)) {
          return;
        }
        const double* squared = distances(queries, begin, end - begin, *block, w);
        for (Size q = begin; q < end; ++q, squared += block->count()) {
          NearestList<double>& list = lists_[at(q)];
          for (Size j = 0; j < block->count(); ++j) {
            offer(list, squared[j], block->first() + j);
          }
        }
      }
      for (Size q = begin; q < end; ++q) {
        finish(queries, q, lists_[at(q)]);
      }
      report(end - begin);
    });
  }

private:
  void start_lists(Size count) {
    lists_.resize(at(count));
    for (NearestList<double>& list : lists_) {
      list.start(request_.neighbors);
    }
  }

  void report(Size work) const {
    if (request_.done) {
      request_.done->fetch_add(work, std::memory_order_relaxed);
    }
  }

  // Runs body(pair, worker) and tells of the progress: all pairs of blocks are as much as all rows.
  template <typename Body>
  void for_pairs(Size pairs, Size blocks, ThreadTeam& team, const Body& body) {
    team.for_chunks(pairs, [&](Size pair, int w) { body(pair, w); });
    finished_pairs_ += pairs;
    if (request_.done) {
      const Size all = blocks * (blocks + 1) / 2 + blocks;
      request_.done->store(points_.rows() * std::min(finished_pairs_, all) / all,
                           std::memory_order_relaxed);
    }
  }

  static void offer(NearestList<double>& list, double squared, Size id) {
    if (squared <= list.limit()) {
      list.add({squared, static_cast<PointId>(id)});
    }
  }

  // Offers the rows of two blocks to each other, or those of one among themselves.
  void visit(Size a, Size b, ThreadTeam& team, int w) {
    const Block<Data>& queries = *blocks_[at(a)];
    const Block<Data>& points = *blocks_[at(b)];
    NearestList<double>* lists = lists_.data() + points.first();
    const Size last = queries.first() + queries.count();
    for (Size begin = queries.first(); begin < last; begin += kQueriesPerChunk) {
      if (team.should_stop(w)) {
        return;
      }
      const Size end = std::min(begin + kQueriesPerChunk, last);
      const double* squared = distances(points_, begin, end - begin, points, w);
      for (Size q = begin; q < end; ++q, squared += points.count()) {
        NearestList<double>& list = lists_[at(q)];
        for (Size j = 0; j < points.count(); ++j) {
          if (a == b) {
            if (points.first() + j != q) {
              offer(list, squared[j], points.first() + j);
            }
          } else {
            offer(list, squared[j], points.first() + j);
            offer(lists[j], squared[j], q);
          }
        }
      }
    }
  }

  // Squared distances of queries from the rows of a block, those of each after the other's.
  const double* distances(const MetricRows<Data>& queries, Size first, Size count,
                          const Block<Data>& block, int w) {
    std::vector<double>& scratch = scratch_[at(w)];
    const double* squares = points_.squares() + block.first();
    const double* weights = points_.weights() + block.first();
    const double* offsets = points_.offsets() + block.first();
    for (Size q = 0; q < count; ++q) {
      const double square = queries.squares()[first + q];
      const double weight = queries.weights()[first + q];
      const double offset = queries.offsets()[first + q];
      double* sums = scratch.data() + q * block.count();
      block.products(queries, first + q, sums);
      for (Size j = 0; j < block.count(); ++j) {
        const double product = weight * weights[j] * sums[j] - offset * offsets[j];
        sums[j] = std::max(0.0, square + squares[j] - 2 * product);
      }
    }
    return scratch.data();
  }

  // Sorts a list, after distances that have lost digits are computed again.
  void finish(const MetricRows<Data>& queries, Size query, NearestList<double>& list) const {
    std::vector<Candidate<double>>& found = list.sorted();
    if (static_cast<Size>(found.size()) < request_.neighbors) {
      throw std::domain_error("a distance is not finite");
    }
    bool again = false;
    for (Candidate<double>& candidate : found) {
      const double squares = queries.squares()[query] + points_.squares()[candidate.id];
      if (candidate.distance < kCancelled * squares) {
        candidate.distance = from_differences(queries, query, candidate.id);
        again = true;
      }
    }
    if (again) {
      std::sort(found.begin(), found.end());
    }
    const Size k = request_.neighbors;
    for (Size j = 0; j < k; ++j) {
      request_.indices[query * k + j] = found[at(j)].id;
      request_.squared_distances[query * k + j] = found[at(j)].distance;
    }
    found = {};
  }

  double from_differences(const MetricRows<Data>& queries, Size query, Size point) const {
    const double weight = queries.weights()[query];
    const double other = points_.weights()[point];
    EdgeId a = queries.begin(query);
    EdgeId b = points_.begin(point);
    double sum = 0;
    while (a < queries.end(query) || b < points_.end(point)) {
      const bool has_a = a < queries.end(query);
      const bool has_b = b < points_.end(point);
      const bool take_a = has_a && (!has_b || queries.column(a) <= points_.column(b));
      const bool take_b = has_b && (!has_a || points_.column(b) <= queries.column(a));
      const double difference =
          (take_a ? weight * queries.value(a) : 0.0) - (take_b ? other * points_.value(b) : 0.0);
      sum += difference * difference;
      a += take_a ? 1 : 0;
      b += take_b ? 1 : 0;
    }
    const double shift = queries.offsets()[query] - points_.offsets()[point];
    return std::max(0.0, sum - shift * shift);
  }

  const SparseRequest<Data>& request_;
  MetricRows<Data> points_;
  std::vector<std::unique_ptr<Block<Data>>> blocks_;
  std::vector<NearestList<double>> lists_;
  std::vector<std::vector<double>> scratch_; // for each worker, the sums of a chunk's queries
  Size finished_pairs_ = 0;
};

} // namespace

template <typename Data>
void sparse_neighbors(const SparseRequest<Data>& request, ThreadTeam& team) {
  const Step step("neighbours");
  SparseSearch<Data>(request, team).among_themselves(team);
}

template <typename Data>
void sparse_neighbors(const SparseRequest<Data>& request, const CsrView<Data>& queries,
                      ThreadTeam& team) {
  const Step step("neighbours");
  const MetricRows<Data> asked(queries, request.features, request.metric, team);
  SparseSearch<Data>(request, team).of_queries(asked, team);
}

#define ACCTSNE_INSTANTIATE(Data)                                                                  \
  template void sparse_neighbors(const SparseRequest<Data>&, ThreadTeam&);                         \
  template void sparse_neighbors(const SparseRequest<Data>&, const CsrView<Data>&, ThreadTeam&);
ACCTSNE_INSTANTIATE(float)
ACCTSNE_INSTANTIATE(double)
#undef ACCTSNE_INSTANTIATE

} // namespace acctsne
