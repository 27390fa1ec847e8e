// Rows of the data less their mean, and products with them.
#include "neighbors/centred_rows.hpp"

#include "acctsne/large_array.hpp"
#include "kernels/dispatch.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

namespace acctsne {
namespace {

using Numbers = std::vector<double>;

// Rows whose sums are kept apart: of data that processes may share, and of a sample, which is small
// and has to do for all threads.
constexpr Size kDataBlock = 2048;
constexpr Size kSampleBlock = 512;
static_assert(kBlockRows % kDataBlock == 0);

// Rows that are read and multiplied at a time: they and their products stay in a core's cache
// (benchmarks/frame.py, docs/tuning.md).
constexpr Size kChunkRows = 256;

// Bytes of sums that may be kept, beyond one for each thread.
constexpr Size kSumBytes = Size{64} << 20;

// Numbers that one thread adds up at a time.
constexpr Size kAddedNumbers = 16384;

// Where rows come from: row(id, scratch) has their numbers, in the scratch memory if they are not
// in memory as they are needed.
template <typename Data_>
struct DenseSource {
  using Data = Data_;
  PointSet<Data> points;

  Size rows() const { return points.rows; }
  Size features() const { return points.features; }
  const Data* row(Size id, std::vector<Data>& scratch) const {
    return points.row(static_cast<PointId>(id), scratch);
  }
};

template <typename Data_>
struct SparseSource {
  using Data = Data_;
  CsrView<Data> matrix;
  Size columns;
  Size step = 1;

  Size rows() const { return chunk_count(matrix.rows(), step); }
  Size features() const { return columns; }
  const Data* row(Size id, std::vector<Data>& scratch) const {
    scratch.assign(at(columns), Data(0));
    for_numbers(id, [&](Size column, Data value) { scratch[at(column)] = value; });
    return scratch.data();
  }
  template <typename Body>
  void for_numbers(Size id, Body&& body) const {
    const EdgeId end = matrix.offsets[at(id * step + 1)];
    for (EdgeId e = matrix.offsets[at(id * step)]; e < end; ++e) {
      body(Size{matrix.columns[at(e)]}, matrix.values[at(e)]);
    }
  }
};

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

template <typename Source>
Numbers mean_of(const Source& own, Size samples, double scale, Size block_rows,
                Communicator& processes, ThreadTeam& team) {
  std::vector<std::vector<typename Source::Data>> scratch(at(team.size()));
  Numbers mean = sum_of_blocks<double>(
      own.rows(), block_rows, own.features(), processes, team,
      [&](Size begin, Size end, int worker, double* sums) {
        for (Size id = begin; id < end; ++id) {
          if constexpr (std::is_same_v<Source, SparseSource<typename Source::Data>>) {
            own.for_numbers(id, [&](Size column, auto value) {
              sums[column] += static_cast<double>(value) * scale;
            });
          } else {
            const auto* row = own.row(id, scratch[at(worker)]);
            for (Size f = 0; f < own.features(); ++f) {
              sums[f] += static_cast<double>(row[f]) * scale;
            }
          }
        }
      });
  for (double& number : mean) {
    number /= static_cast<double>(samples);
  }
  return mean;
}

// Some rows about the origin, as numbers to multiply; memory for one thread.
template <typename Number>
class Chunk {
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

template <typename Number>
LeftFactor<Number> packed_axes(const Numbers& axes, Size features) {
  const std::vector<Number> rounded(axes.begin(), axes.end());
  LeftFactor<Number> packed;
  packed.pack(matrix<Number>(rounded.data(), static_cast<Size>(axes.size()) / features, features));
  return packed;
}

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
                 [](Chunk<Number>& chunk, Number* numbers) { chunk.add_covariance(numbers); });
    complete_symmetric(sum.data(), features());
    return sum;
  }

  void covariance_times(const Numbers& axes, Size step, double* products) override {
    const LeftFactor<Number> packed = packed_axes<Number>(axes, features());
    const auto add = [&](Chunk<Number>& chunk, Number* numbers) {
      chunk.add_covariance_times(packed, numbers);
    };
    const auto length = static_cast<Size>(axes.size());
    // Every process has the sample.
    const Numbers sum = step > 1 ? sum_over(every(step), length, one_process, add)
                                 : sum_over(own_, length, processes_, add);
    std::copy(sum.begin(), sum.end(), products);
  }

  Numbers times(const Numbers& axes) override {
    const LeftFactor<Number> packed = packed_axes<Number>(axes, features());
    Numbers coordinates(at(own_.rows() * packed.rows()));
    team_.for_chunks(chunk_count(own_.rows(), kChunkRows), [&](Size i, int worker) {
      const Size begin = i * kChunkRows;
      Chunk<Number>& chunk = chunks_[at(worker)];
      chunk.read(own_, origin_, begin, std::min(kChunkRows, own_.rows() - begin));
      chunk.place(packed, coordinates.data() + begin * packed.rows());
    });
    return coordinates;
  }

protected:
  const Source& own() const { return own_; }
  const Origin& origin() const { return origin_; }
  ThreadTeam& team() const { return team_; }
  Size block_rows() const { return block_rows_; }

private:
  using Data = typename Source::Data;

  template <typename Add>
  Numbers sum_over(const Source& rows, Size length, Communicator& processes, const Add& add) {
    return sum_of_blocks<Number>(rows.rows(), block_rows_, length, processes, team_,
                                 [&](Size begin, Size end, int worker, Number* numbers) {
                                   Chunk<Number>& chunk = chunks_[at(worker)];
                                   for (Size row = begin; row < end; row += kChunkRows) {
                                     chunk.read(rows, origin_, row,
                                                std::min(kChunkRows, end - row));
                                     add(chunk, numbers);
                                   }
                                 });
  }

  // Every `step`-th row of all processes.
  Source every(Size step) {
    if constexpr (std::is_same_v<Source, SparseSource<Data>>) {
      Source some = own_;
      some.step = step;
      return some;
    } else {
      if (processes_.size() == 1) {
        return {some_rows(own_.points, own_.rows(), step)};
      }
      if (gathered_step_ != step) {
        gather_every(step);
      }
      return {PointSet<Data>{gathered_.data(), chunk_count(samples_, step), features(), {}}};
    }
  }

  void gather_every(Size step) {
    const auto rows_before = [&](Size row) { return chunk_count(row, step) * features(); };
    std::vector<Size> ends(at(processes_.size()));
    for (int rank = 0; rank < processes_.size(); ++rank) {
      const Rows theirs = rows_of(rank, processes_.size(), samples_);
      ends[at(rank)] = rows_before(theirs.end) * Size{sizeof(Data)};
    }
    gathered_.resize(at(rows_before(samples_)));
    const Rows here = rows_of(processes_.rank(), processes_.size(), samples_);
    std::vector<Data> scratch;
    for (Size row = chunk_count(here.begin, step) * step; row < here.end; row += step) {
      std::copy_n(own_.row(row - here.begin, scratch), features(),
                  gathered_.data() + rows_before(row));
    }
    processes_.gather(reinterpret_cast<std::byte*>(gathered_.data()), ends);
    gathered_step_ = step;
  }

  Source own_;
  Origin origin_;
  Communicator& processes_;
  ThreadTeam& team_;
  Size samples_;
  Size block_rows_;
  std::vector<Chunk<Number>> chunks_; // of each thread
  std::vector<Data> gathered_;
  Size gathered_step_ = 0;
};

// Where there are many features, the mean is taken off the products of sparse rows, not off the
// rows.
template <typename Data>
class MultipliedSparseRows final : public MultipliedRows<SparseSource<Data>, Data> {
public:
  using MultipliedRows<SparseSource<Data>, Data>::MultipliedRows;

  void covariance_times(const Numbers& axes, Size step, double* products) override {
    const Axes by_feature(axes, this->origin());
    const Size width = by_feature.count;
    const Size features = this->features();
    SparseSource<Data> rows = this->own();
    rows.step = step;
    // Of each feature, and in the end of the rows' coordinates themselves.
    const Size length = (features + 1) * width;
    std::vector<Numbers> places(at(this->team().size()), Numbers(at(width)));
    const Numbers sum = sum_of_blocks<double>(
        rows.rows(), this->block_rows(), length, one_process, this->team(),
        [&](Size begin, Size end, int worker, double* sums) {
          Numbers& place = places[at(worker)];
          for (Size id = begin; id < end; ++id) {
            by_feature.place(rows, id, place.data());
            add(place, 1, sums + features * width);
            rows.for_numbers(id, [&](Size feature, Data value) {
              add(place, static_cast<double>(value) * this->origin().scale, sums + feature * width);
            });
          }
        });
    const double* in_all = sum.data() + features * width;
    for (Size f = 0; f < features; ++f) {
      for (Size a = 0; a < width; ++a) {
        products[a * features + f] =
            sum[at(f * width + a)] - this->origin().centre[at(f)] * in_all[a];
      }
    }
  }

  Numbers times(const Numbers& axes) override {
    const Axes by_feature(axes, this->origin());
    const SparseSource<Data>& rows = this->own();
    Numbers coordinates(at(rows.rows() * by_feature.count));
    parallel_for(this->team(), rows.rows(), kChunkRows, [&](Size begin, Size end) {
      for (Size id = begin; id < end; ++id) {
        by_feature.place(rows, id, coordinates.data() + id * by_feature.count);
      }
    });
    return coordinates;
  }

private:
  static void add(const Numbers& from, double factor, double* to) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      to[i] += factor * from[i];
    }
  }

  // What a feature has on each axis, together.
  struct Axes {
    Axes(const Numbers& axes, const Origin& origin_)
        : origin(origin_), features(static_cast<Size>(origin.centre.size())),
          count(static_cast<Size>(axes.size()) / features), numbers(axes.size()),
          centre(at(count), 0.0) {
      for (Size a = 0; a < count; ++a) {
        for (Size f = 0; f < features; ++f) {
          const double number = axes[at(a * features + f)];
          numbers[at(f * count + a)] = number;
          centre[at(a)] += origin.centre[at(f)] * number;
        }
      }
    }
    void place(const SparseSource<Data>& rows, Size id, double* to) const {
      std::transform(centre.begin(), centre.end(), to, [](double x) { return -x; });
      rows.for_numbers(id, [&](Size feature, Data value) {
        const double number = static_cast<double>(value) * origin.scale;
        for (Size a = 0; a < count; ++a) {
          to[a] += number * numbers[at(feature * count + a)];
        }
      });
    }

    const Origin& origin;
    Size features;
    Size count;
    Numbers numbers;
    Numbers centre;
  };
};

double largest_of(Communicator& processes, double mine) {
  std::vector<double> all(at(processes.size()), 0.0);
  std::vector<Size> ends;
  for (std::size_t r = 1; r <= all.size(); ++r) {
    ends.push_back(static_cast<Size>(r * sizeof(double)));
  }
  all[at(processes.rank())] = mine;
  processes.gather(reinterpret_cast<std::byte*>(all.data()), ends);
  return *std::max_element(all.begin(), all.end());
}

} // namespace

template <typename Data>
double power_of_two_scale(double largest) {
  constexpr double kLeast = 1e-12;
  constexpr double kMost = 1e12;
  if (largest == 0 || (kLeast <= largest && largest <= kMost)) {
    return 1;
  }
  // Subnormal data may need more than a number of its own precision can say.
  return std::ldexp(1, std::min(-std::ilogb(largest), std::numeric_limits<Data>::max_exponent - 2));
}

template <typename Data>
double largest_size(const PointSet<Data>& rows, ThreadTeam& team) {
  const LinearKernels<Data>& linear = kernels().linear.of<Data>();
  std::vector<Data> largest(at(chunk_count(rows.rows, kChunkRows)), Data(0));
  std::vector<std::vector<Data>> scratch(at(team.size()));
  team.for_chunks(static_cast<Size>(largest.size()), [&](Size chunk, int worker) {
    const Size end = std::min((chunk + 1) * kChunkRows, rows.rows);
    for (Size id = chunk * kChunkRows; id < end; ++id) {
      const Data* row = rows.row(static_cast<PointId>(id), scratch[at(worker)]);
      largest[at(chunk)] = std::max(largest[at(chunk)], linear.largest_size(row, rows.features));
    }
  });
  return largest.empty() ? 0
                         : static_cast<double>(*std::max_element(largest.begin(), largest.end()));
}

template <typename Data>
bool all_finite(const PointSet<Data>& rows, ThreadTeam& team) {
  const LinearKernels<Data>& linear = kernels().linear.of<Data>();
  std::vector<std::vector<Data>> scratch(at(team.size()));
  std::atomic<bool> all{true};
  team.for_chunks(chunk_count(rows.rows, kChunkRows), [&](Size chunk, int worker) {
    const Size end = std::min((chunk + 1) * kChunkRows, rows.rows);
    for (Size id = chunk * kChunkRows; id < end && all.load(std::memory_order_relaxed); ++id) {
      const Data* row = rows.row(static_cast<PointId>(id), scratch[at(worker)]);
      // A sum of squares is quick, but squares of finite numbers may be infinite.
      if (!std::isfinite(linear.dot(row, row, rows.features)) &&
          !std::all_of(row, row + rows.features, [](Data x) { return std::isfinite(x); })) {
        all.store(false, std::memory_order_relaxed);
      }
    }
  });
  return all;
}

template <typename Data>
PointSet<Data> some_rows(PointSet<Data> rows, Size stop, Size step) {
  if (rows.layout.packed) {
    rows.layout.packed = false;
    rows.layout.number_stride = rows.number_bytes();
    rows.layout.row_stride = rows.features * rows.number_bytes();
  }
  rows.layout.row_stride *= step;
  rows.rows = chunk_count(stop, step);
  return rows;
}

template <typename Data>
void place_rows(const PointSet<Data>& rows, const Origin& origin, const MatrixView<float>* axes,
                float* coordinates, double* squared_norms, ThreadTeam& team) {
  LeftFactor<float> packed;
  if (axes != nullptr) {
    packed.pack(*axes);
  }
  const Size dims = axes != nullptr ? axes->rows : rows.features;
  std::vector<Chunk<float>> chunks(at(team.size()));
  team.for_chunks(chunk_count(rows.rows, kChunkRows), [&](Size i, int worker) {
    Chunk<float>& chunk = chunks[at(worker)];
    const Size begin = i * kChunkRows;
    const Size count = std::min(kChunkRows, rows.rows - begin);
    chunk.read(DenseSource<Data>{rows}, origin, begin, count, squared_norms + begin);
    if (axes != nullptr) {
      chunk.place(packed, coordinates + begin * dims);
    } else {
      std::copy_n(chunk.view().numbers, count * dims, coordinates + begin * dims);
    }
  });
}

template <typename Data>
std::unique_ptr<CentredRows> centred_rows(const PointSet<Data>& own, Size samples,
                                          Communicator& processes, ThreadTeam& team) {
  const DenseSource<Data> rows{own};
  const double scale = power_of_two_scale<Data>(largest_of(processes, largest_size(own, team)));
  Origin origin{scale, mean_of(rows, samples, scale, kDataBlock, processes, team)};
  return std::make_unique<MultipliedRows<DenseSource<Data>, Data>>(rows, samples, std::move(origin),
                                                                   kDataBlock, processes, team);
}

template <typename Data>
std::unique_ptr<CentredRows> centred_rows(const CsrView<Data>& matrix, Size features,
                                          ThreadTeam& team) {
  const SparseSource<Data> rows{matrix, features};
  const Data largest = kernels().linear.of<Data>().largest_size(
      matrix.values.data(), static_cast<Size>(matrix.values.size()));
  const double scale = power_of_two_scale<Data>(static_cast<double>(largest));
  Origin origin{scale, mean_of(rows, rows.rows(), scale, kDataBlock, one_process, team)};
  return std::make_unique<MultipliedSparseRows<Data>>(rows, rows.rows(), std::move(origin),
                                                      kDataBlock, one_process, team);
}

template <typename Data>
std::unique_ptr<CentredRows> centred_sample(const PointSet<Data>& sample, Origin& origin,
                                            ThreadTeam& team) {
  const DenseSource<Data> rows{sample};
  origin.centre = mean_of(rows, rows.rows(), origin.scale, kSampleBlock, one_process, team);
  return std::make_unique<MultipliedRows<DenseSource<Data>, float>>(
      rows, rows.rows(), origin, kSampleBlock, one_process, team);
}

#define ACCTSNE_CENTRED_ROWS_OF(Data)                                                              \
  template double power_of_two_scale<Data>(double);                                                \
  template double largest_size(const PointSet<Data>&, ThreadTeam&);                                \
  template bool all_finite(const PointSet<Data>&, ThreadTeam&);                                    \
  template PointSet<Data> some_rows(PointSet<Data>, Size, Size);                                   \
  template void place_rows(const PointSet<Data>&, const Origin&, const MatrixView<float>*, float*, \
                           double*, ThreadTeam&);                                                  \
  template std::unique_ptr<CentredRows> centred_rows(const PointSet<Data>&, Size, Communicator&,   \
                                                     ThreadTeam&);                                 \
  template std::unique_ptr<CentredRows> centred_rows(const CsrView<Data>&, Size, ThreadTeam&);     \
  template std::unique_ptr<CentredRows> centred_sample(const PointSet<Data>&, Origin&, ThreadTeam&);
ACCTSNE_CENTRED_ROWS_OF(float)
ACCTSNE_CENTRED_ROWS_OF(double)
#undef ACCTSNE_CENTRED_ROWS_OF

} // namespace acctsne
