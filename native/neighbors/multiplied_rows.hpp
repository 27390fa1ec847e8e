// What dense and sparse centred rows share: sums over blocks of rows, and rows as numbers to
// multiply.
#pragma once

#include "acctsne/large_array.hpp"
#include "kernels/dispatch.hpp"
#include "neighbors/centred_rows.hpp"

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

namespace acctsne {

using Numbers = std::vector<double>;

// Rows whose sums are kept apart, of data that processes may share.
inline constexpr Size kDataBlock = 2048;
static_assert(kBlockRows % kDataBlock == 0);

// Rows that are read and multiplied at a time: they and their products stay in a core's cache
// (benchmarks/frame.py, docs/tuning.md).
inline constexpr Size kChunkRows = 256;

// Bytes of sums that may be kept, beyond one for each thread.
inline constexpr Size kSumBytes = Size{64} << 20;

// Numbers that one thread adds up at a time.
inline constexpr Size kAddedNumbers = 16384;

// Sums numbers over blocks of own rows: body(begin, end, worker, numbers) adds a block's, kept as
// Number, to zeros.
template <typename Number, typename Body>
Numbers sum_of_blocks(Size rows, Size block_rows, Size length, Communicator& processes,
                      ThreadTeam& team, const Body& body) {
  Numbers total(at(length), 0.0);
  const Size blocks = chunk_count(rows, block_rows);
  const Size kept = std::max<Size>(team.size(), kSumBytes / (length * Size{sizeof(Number)} + 1));
  // Several processes all compute at once, and then wait for those before them.
  const Size at_once = processes.size() > 1 ? blocks : std::min(kept, blocks);
  const LargeArray<Number> partials = make_large_array<Number>(at(at_once * length), team.size());
  const auto compute = [&](Size first, Size count) {
    team.for_chunks(count, [&](Size i, int worker) {
      const Size begin = (first + i) * block_rows;
      Number* partial = partials.get() + i * length;
      std::fill_n(partial, length, Number(0));
      body(begin, std::min(begin + block_rows, rows), worker, partial);
    });
  };
  const auto add = [&](Size count, std::span<double> sums) {
    parallel_for(team, length, kAddedNumbers, [&](Size begin, Size end) {
      for (Size block = 0; block < count; ++block) {
        const Number* partial = partials.get() + block * length;
        for (Size i = begin; i < end; ++i) {
          sums[at(i)] += static_cast<double>(partial[i]);
        }
      }
    });
  };
  if (processes.size() > 1) {
    compute(0, blocks);
    add_in_order(processes, total, [&](std::span<double> sums) { add(blocks, sums); });
    return total;
  }
  for (Size first = 0; first < blocks; first += at_once) {
    const Size count = std::min(at_once, blocks - first);
    compute(first, count);
    add(count, total);
  }
  return total;
}

// Where rows come from is a Source: row(id, scratch) has the numbers of one, in the scratch memory
// if they are not in memory as they are needed, and add_row(id, scale, scratch, sums) adds them,
// scaled, to sums.
template <typename Source>
Numbers mean_of(const Source& own, Size samples, double scale, Size block_rows,
                Communicator& processes, ThreadTeam& team) {
  std::vector<std::vector<typename Source::Data>> scratch(at(team.size()));
  Numbers mean = sum_of_blocks<double>(own.rows(), block_rows, own.features(), processes, team,
                                       [&](Size begin, Size end, int worker, double* sums) {
                                         for (Size id = begin; id < end; ++id) {
                                           own.add_row(id, scale, scratch[at(worker)], sums);
                                         }
                                       });
  for (double& number : mean) {
    number /= static_cast<double>(samples);
  }
  return mean;
}

// Some rows about the origin, as numbers to multiply; memory for one thread.
template <typename Number>
class RowChunk {
public:
  template <typename Source>
  void read(const Source& from, const Origin& origin, Size first, Size count,
            double* squared_norms = nullptr) {
    using Data = typename Source::Data;
    const LinearKernels<Data>& linear = linear_->of<Data>();
    std::vector<Data>& scratch = row_<Data>();
    count_ = count;
    features_ = from.features();
    numbers_.resize(count * features_);
    for (Size i = 0; i < count; ++i) {
      Number* to = numbers_.data() + i * features_;
      const Data* row = from.row(first + i, scratch);
      double norm = 0;
      if constexpr (std::is_same_v<Number, float>) {
        norm = linear.centre_in_float(row, origin.scale, origin.centre.data(), features_, to);
      } else {
        norm = linear.centre(row, origin.scale, origin.centre.data(), features_, to);
      }
      if (squared_norms != nullptr) {
        squared_norms[i] = norm;
      }
    }
  }

  MatrixView<Number> view() const { return matrix<Number>(numbers_.data(), count_, features_); }

  // Their coordinates, axis after axis.
  const std::vector<Number>& on(const LeftFactor<Number>& axes) {
    coordinates_.assign(at(axes.rows() * count_), Number(0));
    add_product(axes, view().transposed(), coordinates_.data(), count_, scratch_);
    return coordinates_;
  }
  // Writes them row by row.
  template <typename Coordinate>
  void place(const LeftFactor<Number>& axes, Coordinate* to) {
    const std::vector<Number>& coordinates = on(axes);
    for (Size i = 0; i < count_; ++i) {
      for (Size a = 0; a < axes.rows(); ++a) {
        *to++ = static_cast<Coordinate>(coordinates[at(a * count_ + i)]);
      }
    }
  }

  // Adds to products, axes x features, what the rows contribute to the covariance times axes.
  void add_covariance_times(const LeftFactor<Number>& axes, Number* products) {
    left_.pack(matrix<Number>(on(axes).data(), axes.rows(), count_));
    add_product(left_, view(), products, features_, scratch_);
  }
  // And to the upper half of the covariance itself.
  void add_covariance(Number* covariance) {
    left_.pack(view().transposed());
    add_product(left_, view(), covariance, features_, scratch_, Part::upper);
  }

private:
  template <typename Data>
  std::vector<Data>& row_() {
    if constexpr (std::is_same_v<Data, float>) {
      return floats_;
    } else {
      return doubles_;
    }
  }

  const Both<LinearKernels>* linear_ = &kernels().linear;
  Size count_ = 0;
  Size features_ = 0;
  std::vector<float> floats_;
  std::vector<double> doubles_;
  LineAligned<Number> numbers_;
  std::vector<Number> coordinates_;
  LeftFactor<Number> left_;
  ProductScratch<Number> scratch_;
};

// Rows multiplied as Number, whatever they come from.
template <typename Source, typename Number>
class MultipliedRows : public CentredRows {
public:
  MultipliedRows(Source own, Size samples, Origin origin, Size block_rows, Communicator& processes,
                 ThreadTeam& team)
      : own_(std::move(own)), origin_(std::move(origin)), processes_(processes), team_(team),
        samples_(samples), block_rows_(block_rows), chunks_(at(team.size())) {}

  Size samples() const override { return samples_; }
  Size features() const override { return own_.features(); }

  Numbers covariance() override {
    Numbers sum =
        sum_over(own_, features() * features(), processes_,
                 [](RowChunk<Number>& chunk, Number* numbers) { chunk.add_covariance(numbers); });
    complete_symmetric(sum.data(), features());
    return sum;
  }

protected:
  // Sums what add(chunk, numbers) makes of the rows' chunks.
  template <typename Add>
  Numbers sum_over(const Source& rows, Size length, Communicator& processes, const Add& add) {
    return sum_of_blocks<Number>(rows.rows(), block_rows_, length, processes, team_,
                                 [&](Size begin, Size end, int worker, Number* numbers) {
                                   RowChunk<Number>& chunk = chunks_[at(worker)];
                                   for (Size row = begin; row < end; row += kChunkRows) {
                                     chunk.read(rows, origin_, row,
                                                std::min(kChunkRows, end - row));
                                     add(chunk, numbers);
                                   }
                                 });
  }

  Source own_;
  Origin origin_;
  Communicator& processes_;
  ThreadTeam& team_;
  Size samples_;
  Size block_rows_;
  std::vector<RowChunk<Number>> chunks_; // of each thread
};

} // namespace acctsne
