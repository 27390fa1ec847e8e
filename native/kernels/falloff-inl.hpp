// How the similarity of two points falls off with their distance: (1 + d^2)^-exponent. The kernels
// of the repulsion are templates over the two forms below, so that exponent 1, t-SNE's own, costs
// its reciprocal and nothing else.

template <typename Real>
struct FirstPower {
  using Vec = typename Simd<Real>::Vec;
  static constexpr Real exponent = 1;

  explicit FirstPower(Real) {}
  // The similarity, given w = 1 / (1 + d^2) and 1 + d^2 itself.
  Vec operator()(Vec w, Vec) const { return w; }
  Real operator()(Real w, Real) const { return w; }
};

template <typename Real>
struct AnyPower {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  Real exponent;

  explicit AnyPower(Real e) : exponent(e) {}
  // Relative error, for exponents from 0.001 to 1000, at most 2.3 (1 + |log q|) epsilon.
  Vec operator()(Vec, Vec one_plus_d2) const {
    // Beyond this there is nobody: the padding of the tree's lists, and overflow. With a small
    // exponent even such distances would weigh.
    constexpr Real kNobody = sizeof(Real) == 4 ? Real(1e35) : Real(1e299);
    const Vec q = S::exp2_negative(-exponent * S::log2_from_one(one_plus_d2));
    return one_plus_d2 < kNobody ? q : Vec{};
  }
  Real operator()(Real, Real one_plus_d2) const { return (*this)(Vec{}, S::splat(one_plus_d2))[0]; }
};
