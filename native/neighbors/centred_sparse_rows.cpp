// Centred rows of a sparse matrix.
#include "neighbors/multiplied_rows.hpp"

namespace acctsne {
namespace {

template <typename Data_>
struct SparseSource {
  using Data = Data_;
  CsrView<Data> matrix;
  Size columns;
  Size step = 1; // every so many rows of the matrix

  Size rows() const { return chunk_count(matrix.rows(), step); }
  Size features() const { return columns; }
  const Data* row(Size id, std::vector<Data>& scratch) const {
    scratch.assign(at(columns), Data(0));
    for_numbers(id, [&](Size column, Data value) { scratch[at(column)] = value; });
    return scratch.data();
  }
  void add_row(Size id, double scale, std::vector<Data>&, double* sums) const {
    for_numbers(
        id, [&](Size column, Data value) { sums[column] += static_cast<double>(value) * scale; });
  }
  template <typename Body>
  void for_numbers(Size id, Body&& body) const {
    const EdgeId end = matrix.offsets[at(id * step + 1)];
    for (EdgeId e = matrix.offsets[at(id * step)]; e < end; ++e) {
      body(Size{matrix.columns[at(e)]}, matrix.values[at(e)]);
    }
  }
};

// Where there are many features, the mean is taken off the products of sparse rows, not off the
// rows.
template <typename Data>
class MultipliedSparseRows final : public MultipliedRows<SparseSource<Data>, Data> {
public:
  using MultipliedRows<SparseSource<Data>, Data>::MultipliedRows;

  void covariance_times(const Numbers& axes, Size step, double* products) override {
    const Axes by_feature(axes, this->origin_);
    const Size width = by_feature.count;
    const Size features = this->features();
    SparseSource<Data> rows = this->own_;
    rows.step = step;
    // Of each feature, and in the end of the rows' coordinates themselves.
    const Size length = (features + 1) * width;
    std::vector<Numbers> places(at(this->team_.size()), Numbers(at(width)));
    const Numbers sum = sum_of_blocks<double>(
        rows.rows(), this->block_rows_, length, one_process, this->team_,
        [&](Size begin, Size end, int worker, double* sums) {
          Numbers& place = places[at(worker)];
          for (Size id = begin; id < end; ++id) {
            by_feature.place(rows, id, place.data());
            add(place, 1, sums + features * width);
            rows.for_numbers(id, [&](Size feature, Data value) {
              add(place, static_cast<double>(value) * this->origin_.scale, sums + feature * width);
            });
          }
        });
    const double* in_all = sum.data() + features * width;
    for (Size f = 0; f < features; ++f) {
      for (Size a = 0; a < width; ++a) {
        products[a * features + f] =
            sum[at(f * width + a)] - this->origin_.centre[at(f)] * in_all[a];
      }
    }
  }

  Numbers times(const Numbers& axes) override {
    const Axes by_feature(axes, this->origin_);
    const SparseSource<Data>& rows = this->own_;
    Numbers coordinates(at(rows.rows() * by_feature.count));
    parallel_for(this->team_, rows.rows(), kChunkRows, [&](Size begin, Size end) {
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

} // namespace

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

#define ACCTSNE_INSTANTIATE(Data)                                                                  \
  template std::unique_ptr<CentredRows> centred_rows(const CsrView<Data>&, Size, ThreadTeam&);
ACCTSNE_INSTANTIATE(float)
ACCTSNE_INSTANTIATE(double)
#undef ACCTSNE_INSTANTIATE

} // namespace acctsne
