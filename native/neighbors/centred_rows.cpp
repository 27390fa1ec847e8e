// Centred rows of dense data, and what is asked of dense rows besides.
#include "neighbors/multiplied_rows.hpp"

#include <atomic>
#include <cmath>
#include <limits>

namespace acctsne {
namespace {

// Rows of a sample whose sums are kept apart: a sample is small and has to do for all threads.
constexpr Size kSampleBlock = 512;

template <typename Data_>
struct DenseSource {
  using Data = Data_;
  PointSet<Data> points;

  Size rows() const { return points.rows; }
  Size features() const { return points.features; }
  const Data* row(Size id, std::vector<Data>& scratch) const {
    return points.row(static_cast<PointId>(id), scratch);
  }
  void add_row(Size id, double scale, std::vector<Data>& scratch, double* sums) const {
    const Data* numbers = row(id, scratch);
    for (Size f = 0; f < features(); ++f) {
      sums[f] += static_cast<double>(numbers[f]) * scale;
    }
  }
};

template <typename Number>
LeftFactor<Number> packed_axes(const Numbers& axes, Size features) {
  const std::vector<Number> rounded(axes.begin(), axes.end());
  LeftFactor<Number> packed;
  packed.pack(matrix<Number>(rounded.data(), static_cast<Size>(axes.size()) / features, features));
  return packed;
}

template <typename Data, typename Number>
class MultipliedDenseRows final : public MultipliedRows<DenseSource<Data>, Number> {
public:
  using MultipliedRows<DenseSource<Data>, Number>::MultipliedRows;

  void covariance_times(const Numbers& axes, Size step, double* products) override {
    const LeftFactor<Number> packed = packed_axes<Number>(axes, this->features());
    const auto add = [&](RowChunk<Number>& chunk, Number* numbers) {
      chunk.add_covariance_times(packed, numbers);
    };
    const auto length = static_cast<Size>(axes.size());
    // Every process has the sample.
    const Numbers sum = step > 1 ? this->sum_over(every(step), length, one_process, add)
                                 : this->sum_over(this->own_, length, this->processes_, add);
    std::copy(sum.begin(), sum.end(), products);
  }

  Numbers times(const Numbers& axes) override {
    const LeftFactor<Number> packed = packed_axes<Number>(axes, this->features());
    Numbers coordinates(at(this->own_.rows() * packed.rows()));
    this->team_.for_chunks(chunk_count(this->own_.rows(), kChunkRows), [&](Size i, int worker) {
      const Size begin = i * kChunkRows;
      RowChunk<Number>& chunk = this->chunks_[at(worker)];
      chunk.read(this->own_, this->origin_, begin, std::min(kChunkRows, this->own_.rows() - begin));
      chunk.place(packed, coordinates.data() + begin * packed.rows());
    });
    return coordinates;
  }

private:
  // Every `step`-th row of all processes.
  DenseSource<Data> every(Size step) {
    if (this->processes_.size() == 1) {
      return {some_rows(this->own_.points, this->own_.rows(), step)};
    }
    if (gathered_step_ != step) {
      gather_every(step);
    }
    return {
        PointSet<Data>{gathered_.data(), chunk_count(this->samples_, step), this->features(), {}}};
  }

  void gather_every(Size step) {
    const auto rows_before = [&](Size row) { return chunk_count(row, step) * this->features(); };
    std::vector<Size> ends(at(this->processes_.size()));
    for (int rank = 0; rank < this->processes_.size(); ++rank) {
      const Rows theirs = rows_of(rank, this->processes_.size(), this->samples_);
      ends[at(rank)] = rows_before(theirs.end) * Size{sizeof(Data)};
    }
    gathered_.resize(at(rows_before(this->samples_)));
    const Rows here = rows_of(this->processes_.rank(), this->processes_.size(), this->samples_);
    std::vector<Data> scratch;
    for (Size row = chunk_count(here.begin, step) * step; row < here.end; row += step) {
      std::copy_n(this->own_.row(row - here.begin, scratch), this->features(),
                  gathered_.data() + rows_before(row));
    }
    this->processes_.gather(reinterpret_cast<std::byte*>(gathered_.data()), ends);
    gathered_step_ = step;
  }

  std::vector<Data> gathered_;
  Size gathered_step_ = 0;
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
  std::vector<RowChunk<float>> chunks(at(team.size()));
  team.for_chunks(chunk_count(rows.rows, kChunkRows), [&](Size i, int worker) {
    RowChunk<float>& chunk = chunks[at(worker)];
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
  return std::make_unique<MultipliedDenseRows<Data, Data>>(rows, samples, std::move(origin),
                                                           kDataBlock, processes, team);
}

template <typename Data>
std::unique_ptr<CentredRows> centred_sample(const PointSet<Data>& sample, Origin& origin,
                                            ThreadTeam& team) {
  const DenseSource<Data> rows{sample};
  origin.centre = mean_of(rows, rows.rows(), origin.scale, kSampleBlock, one_process, team);
  return std::make_unique<MultipliedDenseRows<Data, float>>(rows, rows.rows(), origin, kSampleBlock,
                                                            one_process, team);
}

#define ACCTSNE_INSTANTIATE(Data)                                                                  \
  template double power_of_two_scale<Data>(double);                                                \
  template double largest_size(const PointSet<Data>&, ThreadTeam&);                                \
  template bool all_finite(const PointSet<Data>&, ThreadTeam&);                                    \
  template PointSet<Data> some_rows(PointSet<Data>, Size, Size);                                   \
  template void place_rows(const PointSet<Data>&, const Origin&, const MatrixView<float>*, float*, \
                           double*, ThreadTeam&);                                                  \
  template std::unique_ptr<CentredRows> centred_rows(const PointSet<Data>&, Size, Communicator&,   \
                                                     ThreadTeam&);                                 \
  template std::unique_ptr<CentredRows> centred_sample(const PointSet<Data>&, Origin&, ThreadTeam&);
ACCTSNE_INSTANTIATE(float)
ACCTSNE_INSTANTIATE(double)
#undef ACCTSNE_INSTANTIATE

} // namespace acctsne
