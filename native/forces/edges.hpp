// P in the form that the attraction reads: rows and columns relabelled, columns in 16 bits where
// they fit, values in half precision if that is wanted.
#pragma once

#include "acctsne/csr.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "kernels/kernels.hpp"

#include <memory>
#include <span>
#include <vector>

namespace acctsne {

template <typename Real>
class Edges {
public:
  // Takes the edges of P with its points relabelled: new point i is old point order[i]. May be
  // called again with another order; memory is then used again. `half` asks for half precision,
  // which is heeded where the CPU converts it and Real is float.
  void build(const CsrView<Real>& P, std::span<const PointId> order, bool half, ThreadTeam& team);

  Size rows() const { return rows_; }
  EdgeView<Real> view() const;

private:
  // Grows without copying or clearing what it holds.
  template <typename T>
  struct Buffer {
    std::unique_ptr<T[]> data;
    std::size_t capacity = 0;
    void resize(Size size) {
      if (static_cast<std::size_t>(size) > capacity) {
        data.reset();
        capacity = static_cast<std::size_t>(size);
        data.reset(new T[capacity]);
      }
    }
  };

  // Values of Real or halves of them.
  struct Values {
    Buffer<Real> full;
    Buffer<std::uint16_t> half;
  };

  Size rows_ = 0;
  Real half_scale_ = 0;        // 0 if values are not halves
  std::vector<PointId> label_; // new label of each old point
  std::vector<EdgeId> near_offsets_;
  std::vector<EdgeId> far_offsets_;
  Buffer<std::uint16_t> near_columns_;
  Values near_values_;
  Buffer<PointId> far_columns_;
  Values far_values_;
};

} // namespace acctsne
