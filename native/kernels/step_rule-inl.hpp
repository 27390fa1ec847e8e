// How a gradient becomes a step, once for all who move points: vectors of coordinates, single
// coordinates, and new points in a map. A Value is a vector or a number.
//
// Included inside a namespace of the unit's own, like all that is compiled for several instruction
// sets.

// The step rule of the original t-SNE, which scikit-learn follows: every coordinate has a gain that
// grows while the gradient points against the last step, and momentum is moderate.
template <typename Real>
struct DeltaBarDelta {
  static constexpr Real kIncrease = Real(0.2);
  static constexpr Real kDecay = Real(0.8);
  static constexpr Real kSmallest = Real(0.01);

  // The gain that the coming step is made with.
  template <typename Value>
  static Value gain(Value old_gain, Value last, Value gradient) {
    const Value gain =
        last * gradient < Real(0) ? old_gain + kIncrease : old_gain * kDecay; // uphill: less
    return gain > kSmallest ? gain : kSmallest - Value{};
  }
};

// Momentum close to 1 moves whole clusters, and a preconditioner divides each point's gradient by
// how stiffly its neighbours hold it. That leaves one thing to a gain: to shorten steps that are
// too large. A point whose step turns round and becomes longer swings ever farther, so its gain is
// lowered; in all other steps the gain recovers. A point whose step turns round and becomes shorter
// is coming to rest, and a lower gain would only delay that. The constants are settled by
// benchmarks/descent.py (docs/tuning.md).
template <typename Real>
struct HeavyBall {
  static constexpr Real kTurned = Real(0.7);
  static constexpr Real kRecovery = Real(1.02);
  static constexpr Real kLargest = Real(1);

  // The gain for the step after the next. `turn` is the product of a point's next and last steps,
  // `growth` what the square of its length grows by.
  template <typename Value>
  static Value gain(Value old_gain, Value turn, Value growth) {
    const Value recovered = old_gain * kRecovery;
    const Value calm = recovered < kLargest ? recovered : kLargest - Value{};
    const Value careful = growth > Real(0) ? old_gain * kTurned : calm;
    return turn < Real(0) ? careful : calm;
  }
};

template <typename Real, typename Value>
inline Value next_step(Real momentum, Value last, Real learning_rate, Value scaled_gradient) {
  return momentum * last - learning_rate * scaled_gradient;
}

// What a step of this squared length is to be multiplied by.
template <typename Real>
inline Real shortened(Real squared_length, Real max_step) {
  return squared_length > max_step * max_step
             ? max_step / static_cast<Real>(__builtin_sqrt(static_cast<double>(squared_length)))
             : Real(1);
}
