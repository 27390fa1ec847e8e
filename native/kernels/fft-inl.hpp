// Complex FFTs, one per vector lane, for the convolution of the grid (forces/kernel_spectrum.cpp).
//
// Stockham's self-sorting form of the Cooley-Tukey algorithm: each pass reads one buffer and writes
// the other, and the result comes out in order. A lane never talks to another, so every operation
// is a plain vector operation. As many lines as a vector has lanes do not fit the first cache, so
// passes are few and large, and what a pass does to a few elements is an FFT of its own.
//
// The data often fill the first half of each line at most, and only that half of the result is
// wanted. The first pass has radix 4 and takes its inputs from a callable, so that a zero half is
// never read; the last one has radix 4 and hands its outputs to a callable, so that an unwanted
// half is never computed. An inverse transform is a forward one with real and imaginary parts
// exchanged.

template <typename Real>
struct ComplexVec {
  typename Simd<Real>::Vec re;
  typename Simd<Real>::Vec im;

  ComplexVec swapped() const { return {im, re}; }
  ComplexVec times(Real c, Real s) const { return {re * c - im * s, re * s + im * c}; }
  friend ComplexVec operator+(ComplexVec a, ComplexVec b) { return {a.re + b.re, a.im + b.im}; }
  friend ComplexVec operator-(ComplexVec a, ComplexVec b) { return {a.re - b.re, a.im - b.im}; }
  friend ComplexVec operator*(ComplexVec a, Real b) { return {a.re * b, a.im * b}; }
  // -i a
  ComplexVec turned() const { return {im, -re}; }
};

// A buffer of complex vectors: element k at [2 k] (real parts) and [2 k + 1] (imaginary parts).
template <typename Real>
inline ComplexVec<Real> load_complex(const Real* buffer, Size k) {
  using S = Simd<Real>;
  const Real* at = buffer + k * 2 * S::kLanes;
  return {S::load(at), S::load(at + S::kLanes)};
}
template <typename Real>
inline void store_complex(Real* buffer, Size k, ComplexVec<Real> value) {
  using S = Simd<Real>;
  Real* at = buffer + k * 2 * S::kLanes;
  S::store(at, value.re);
  S::store(at + S::kLanes, value.im);
}

// The discrete Fourier transforms of length Radix, in place.
template <int Radix, typename Real>
inline void butterfly(ComplexVec<Real>* a) {
  using C = ComplexVec<Real>;
  if constexpr (Radix == 2) {
    const C t = a[0] - a[1];
    a[0] = a[0] + a[1];
    a[1] = t;
  } else if constexpr (Radix == 3) {
    constexpr Real kSin = Real(0.866025403784438646764); // sin(2 pi / 3)
    const C sum = a[1] + a[2];
    const C difference = (a[1] - a[2]).turned() * kSin;
    const C middle = a[0] - sum * Real(0.5);
    a[0] = a[0] + sum;
    a[1] = middle + difference;
    a[2] = middle - difference;
  } else if constexpr (Radix == 4) {
    const C t0 = a[0] + a[2];
    const C t1 = a[0] - a[2];
    const C t2 = a[1] + a[3];
    const C t3 = (a[1] - a[3]).turned();
    a[0] = t0 + t2;
    a[1] = t1 + t3;
    a[2] = t0 - t2;
    a[3] = t1 - t3;
  } else {
    static_assert(Radix == 5);
    constexpr Real kCos1 = Real(0.309016994374947424102);  // cos(2 pi / 5)
    constexpr Real kCos2 = Real(-0.809016994374947424102); // cos(4 pi / 5)
    constexpr Real kSin1 = Real(0.951056516295153572116);
    constexpr Real kSin2 = Real(0.587785252292473129169);
    const C s1 = a[1] + a[4];
    const C s2 = a[2] + a[3];
    const C d1 = (a[1] - a[4]).turned();
    const C d2 = (a[2] - a[3]).turned();
    const C m1 = a[0] + s1 * kCos1 + s2 * kCos2;
    const C m2 = a[0] + s1 * kCos2 + s2 * kCos1;
    const C n1 = d1 * kSin1 + d2 * kSin2;
    const C n2 = d1 * kSin2 - d2 * kSin1;
    a[0] = a[0] + s1 + s2;
    a[1] = m1 + n1;
    a[2] = m2 + n2;
    a[3] = m2 - n2;
    a[4] = m1 - n1;
  }
}

// One step of a small FFT: `blocks` twiddle factors, each for `stride` neighbouring elements.
template <int Radix, typename Real>
inline void small_pass(const Real* from, Real* to, Size blocks, Size stride, const Real* twiddles) {
  for (Size p = 0; p < blocks; ++p) {
    const Real* w = twiddles + p * 2 * (Radix - 1);
    for (Size q = 0; q < stride; ++q) {
      ComplexVec<Real> a[Radix];
      for (int j = 0; j < Radix; ++j) {
        a[j] = load_complex(from, q + stride * (p + j * blocks));
      }
      butterfly<Radix>(a);
      store_complex(to, q + stride * Radix * p, a[0]);
      for (int j = 1; j < Radix; ++j) {
        store_complex(to, q + stride * (Radix * p + j), a[j].times(w[2 * j - 2], w[2 * j - 1]));
      }
    }
  }
}

// The last step, whose outputs go to a callable.
template <int Radix, typename Real, typename Store>
inline void last_small_pass(const Real* from, Size stride, Store&& store) {
  for (Size q = 0; q < stride; ++q) {
    ComplexVec<Real> a[Radix];
    for (int j = 0; j < Radix; ++j) {
      a[j] = load_complex(from, q + stride * j);
    }
    butterfly<Radix>(a);
    for (int j = 0; j < Radix; ++j) {
      store(q + stride * j, a[j]);
    }
  }
}

template <typename Visit>
inline void with_radix(int radix, Visit&& visit) {
  switch (radix) {
  case 2:
    return visit(std::integral_constant<int, 2>{});
  case 3:
    return visit(std::integral_constant<int, 3>{});
  case 4:
    return visit(std::integral_constant<int, 4>{});
  default:
    return visit(std::integral_constant<int, 5>{});
  }
}

// One pass between buffers, which lie in the second cache: small FFTs, each done in the first one.
// Returns where the next pass's twiddles begin.
template <typename Real>
inline const Real* fft_pass(const FftPass& pass, const Real* from, Real* to, Size blocks,
                            Size stride, const Real* small_twiddles) {
  constexpr int kLanes = Simd<Real>::kLanes;
  alignas(kVectorBytes) Real buffers[2][kMaxRadix * 2 * kLanes];
  const int radix = pass.radix;
  const Real* twiddles = small_twiddles;
  for (int i = 0, n = radix; i + 1 < pass.factors; ++i) {
    n /= pass.factor[i];
    twiddles += 2 * n * (pass.factor[i] - 1);
  }
  for (Size p = 0; p < blocks; ++p) {
    const Real* w = twiddles + p * 2 * (radix - 1);
    for (Size q = 0; q < stride; ++q) {
      Real* read = buffers[0];
      Real* written = buffers[1];
      for (int j = 0; j < radix; ++j) {
        store_complex(read, j, load_complex(from, q + stride * (p + j * blocks)));
      }
      const Real* small = small_twiddles;
      Size n = radix;
      Size small_stride = 1;
      for (int i = 0; i + 1 < pass.factors; ++i) {
        with_radix(pass.factor[i], [&](auto factor) {
          n /= factor();
          small_pass<factor()>(read, written, n, small_stride, small);
          small += 2 * n * (factor() - 1);
          small_stride *= factor();
        });
        Real* const swap = read;
        read = written;
        written = swap;
      }
      with_radix(pass.factor[pass.factors - 1], [&](auto factor) {
        last_small_pass<factor()>(read, small_stride, [&](Size k, ComplexVec<Real> value) {
          const Size at = q + stride * (radix * p + k);
          store_complex(to, at, k == 0 ? value : value.times(w[2 * k - 2], w[2 * k - 1]));
        });
      });
    }
  }
  return twiddles + blocks * 2 * (radix - 1);
}

// Transforms plan.length elements given by load(k), zero for k >= length / 2 if HalfInput, and
// hands over store(k, value), k < length / 2 only if HalfOutput. `scratch` holds two buffers.
template <bool HalfInput, bool HalfOutput, typename Real, typename Load, typename Store>
inline void fft(const FftPlan<Real>& plan, Load&& load, Store&& store, Real* scratch) {
  using C = ComplexVec<Real>;
  const Size n = plan.length;
  Real* from = scratch;
  Real* to = scratch + n * 2 * Simd<Real>::kLanes;
  const Real* twiddles = plan.twiddles;

  Size blocks = n / 4;
  for (Size p = 0; p < blocks; ++p) {
    const Real* w = twiddles + p * 6;
    C a[4];
    a[0] = load(p);
    a[1] = load(p + blocks);
    if constexpr (HalfInput) {
      const C turned = a[1].turned();
      a[2] = a[0] - a[1];
      a[3] = a[0] - turned;
      const C first = a[0];
      a[0] = first + a[1];
      a[1] = first + turned;
    } else {
      a[2] = load(p + 2 * blocks);
      a[3] = load(p + 3 * blocks);
      butterfly<4>(a);
    }
    store_complex(from, 4 * p, a[0]);
    for (int j = 1; j < 4; ++j) {
      store_complex(from, 4 * p + j, a[j].times(w[2 * j - 2], w[2 * j - 1]));
    }
  }
  twiddles += blocks * 6;

  Size stride = 4;
  for (int i = 1; i + 1 < plan.passes; ++i) {
    const FftPass& pass = plan.pass[i];
    blocks /= pass.radix;
    twiddles = fft_pass(pass, from, to, blocks, stride, twiddles);
    stride *= pass.radix;
    Real* const written = to;
    to = from;
    from = written;
  }

  for (Size q = 0; q < stride; ++q) {
    C a[4];
    for (int j = 0; j < 4; ++j) {
      a[j] = load_complex(from, q + stride * j);
    }
    butterfly<4>(a);
    store(q, a[0]);
    store(q + stride, a[1]);
    if constexpr (!HalfOutput) {
      store(q + 2 * stride, a[2]);
      store(q + 3 * stride, a[3]);
    }
  }
}

// Transforms `used` elements and zeros behind them.
template <typename Real, typename Load, typename Store>
inline void forward_fft(const FftPlan<Real>& plan, Size used, Load&& load, Store&& store,
                        Real* scratch) {
  if (2 * used <= plan.length) {
    fft<true, false>(plan, load, store, scratch);
  } else {
    fft<false, false>(plan, load, store, scratch);
  }
}

// Wants the first `used` elements of the result.
template <typename Real, typename Load, typename Store>
inline void inverse_fft(const FftPlan<Real>& plan, Size used, Load&& load, Store&& store,
                        Real* scratch) {
  if (2 * used <= plan.length) {
    fft<false, true>(plan, load, store, scratch);
  } else {
    fft<false, false>(plan, load, store, scratch);
  }
}

// The spectrum is stored in slabs of kLanes values of kx: [kx / kLanes][y][real, imaginary][kx %
// kLanes], so that the transform along y finds kx in its lanes and walks over contiguous memory.

// How many lines of the grid ahead are fetched: they lie a few kilobytes apart, too far for the CPU
// to guess.
inline constexpr Size kGridPrefetch = 8;

// Along x, two sets of kLanes rows at a time: one set is the real part, the other the imaginary
// part of the same transform, and the symmetry of real data tells them apart afterwards. Rows are
// y, so the grid [x][y] is read along its lines. `spectrum` is that of the first row; slabs are
// `slab_size` apart.
template <typename Real>
void fft_grid_to_spectrum(const FftPlan<Real>& plan, const Real* grid, Size grid_stride,
                          Size columns, Real* spectrum, Size slab_size, Real* scratch) {
  using S = Simd<Real>;
  using C = ComplexVec<Real>;
  constexpr int kLanes = S::kLanes;
  const Size n = plan.length;
  Real* line = scratch + 4 * n * kLanes;
  forward_fft(
      plan, columns,
      [&](Size x) -> C {
        if (x >= columns) {
          return {typename S::Vec{}, typename S::Vec{}};
        }
        const Real* at = grid + x * grid_stride;
        __builtin_prefetch(at + kGridPrefetch * grid_stride);
        return {S::load(at), S::load(at + kLanes)};
      },
      [&](Size k, C value) { store_complex(line, k, value); }, scratch);

  for (Size k0 = 0; k0 <= n / 2; k0 += kLanes) {
    typename S::Vec parts[4][kLanes]; // real and imaginary parts of the first set, then the second
    for (int j = 0; j < kLanes; ++j) {
      const Size k = k0 + j <= n / 2 ? k0 + j : n / 2; // the last vector is padded
      const C z = load_complex(line, k);
      const C mirror = load_complex(line, k == 0 ? Size(0) : n - k);
      parts[0][j] = (z.re + mirror.re) * Real(0.5);
      parts[1][j] = (z.im - mirror.im) * Real(0.5);
      parts[2][j] = (z.im + mirror.im) * Real(0.5);
      parts[3][j] = (mirror.re - z.re) * Real(0.5);
    }
    Real* slab = spectrum + k0 / kLanes * slab_size;
    for (int part = 0; part < 4; ++part) {
      transpose<Real>(parts[part]);
      for (int row = 0; row < kLanes; ++row) {
        S::store(slab + ((part / 2 * kLanes + row) * 2 + part % 2) * kLanes, parts[part][row]);
      }
    }
  }
}

// Along y for one slab: transform, multiply by the kernel's real spectrum [ky][kx], transform back.
template <typename Real>
void fft_convolve_slab(const FftPlan<Real>& plan, const Real* kernel, Size rows, Real* slab,
                       Real* scratch) {
  using S = Simd<Real>;
  using C = ComplexVec<Real>;
  const Size n = plan.length;
  Real* line = scratch + 4 * n * S::kLanes;
  forward_fft(
      plan, rows,
      [&](Size y) -> C {
        if (y >= rows) {
          return {typename S::Vec{}, typename S::Vec{}};
        }
        return load_complex(slab, y);
      },
      [&](Size k, C value) {
        const auto weight = S::load(kernel + (k <= n / 2 ? k : n - k) * S::kLanes);
        store_complex(line, k, C{value.re * weight, value.im * weight});
      },
      scratch);
  inverse_fft(
      plan, rows, [&](Size k) { return load_complex(line, k).swapped(); },
      [&](Size y, C value) {
        if (y < rows) {
          store_complex(slab, y, value.swapped());
        }
      },
      scratch);
}

// The way back along x, for two sets of kLanes rows.
template <typename Real>
void fft_spectrum_to_grid(const FftPlan<Real>& plan, const Real* spectrum, Size slab_size,
                          Real* grid, Size grid_stride, Size columns, Real* scratch) {
  using S = Simd<Real>;
  using C = ComplexVec<Real>;
  constexpr int kLanes = S::kLanes;
  const Size n = plan.length;
  Real* line = scratch + 4 * n * kLanes;
  for (Size k0 = 0; k0 <= n / 2; k0 += kLanes) {
    typename S::Vec parts[4][kLanes];
    const Real* slab = spectrum + k0 / kLanes * slab_size;
    for (int part = 0; part < 4; ++part) {
      for (int row = 0; row < kLanes; ++row) {
        parts[part][row] = S::load(slab + ((part / 2 * kLanes + row) * 2 + part % 2) * kLanes);
      }
      transpose<Real>(parts[part]);
    }
    for (int j = 0; j < kLanes && k0 + j <= n / 2; ++j) {
      const Size k = k0 + j;
      store_complex(line, k, C{parts[0][j] - parts[3][j], parts[1][j] + parts[2][j]});
      if (k > 0 && k < n / 2) {
        store_complex(line, n - k, C{parts[0][j] + parts[3][j], parts[2][j] - parts[1][j]});
      }
    }
  }
  inverse_fft(
      plan, columns, [&](Size k) { return load_complex(line, k).swapped(); },
      [&](Size x, C value) {
        if (x < columns) {
          Real* at = grid + x * grid_stride;
          S::store(at, value.im);
          S::store(at + kLanes, value.re);
        }
      },
      scratch);
}

// Transforms kLanes real, even sequences in place: elements 0 ... length / 2 of each, `stride`
// apart, the rest being their mirror image. The transforms are real and even too.
template <typename Real>
void fft_even_lines(const FftPlan<Real>& plan, Real* lines, Size stride, Real* scratch) {
  using S = Simd<Real>;
  using C = ComplexVec<Real>;
  const Size n = plan.length;
  fft<false, false>(
      plan,
      [&](Size x) -> C {
        return {S::load(lines + (x <= n / 2 ? x : n - x) * stride), typename S::Vec{}};
      },
      [&](Size k, C value) {
        if (k <= n / 2) {
          S::store(lines + k * stride, value.re);
        }
      },
      scratch);
}
