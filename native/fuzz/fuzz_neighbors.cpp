// Both neighbour searches, and queries, over any data.
//
// Promised by Python: numbers are finite, and the frame is one of the data: a power of two brings
// squares into float's range, centre and coordinates are computed from the data. k is within its
// limits, which the bindings check again.
#include "fuzz/input.hpp"
#include "neighbors/approximate.hpp"
#include "neighbors/exact.hpp"
#include "tests/projection.hpp"

#include <set>

using namespace acctsne;
using namespace acctsne::fuzz;

namespace {

template <typename Data>
double distance(const std::vector<Data>& a, Size i, const std::vector<Data>& b, Size j,
                Size features, double scale) {
  double sum = 0;
  for (Size f = 0; f < features; ++f) {
    const double difference = static_cast<double>(a[at(i * features + f)]) * scale -
                              static_cast<double>(b[at(j * features + f)]) * scale;
    sum += difference * difference;
  }
  return sum;
}

template <typename Real>
struct Found {
  std::vector<PointId> indices;
  std::vector<Real> distances;

  Found(Size queries, Size k) : indices(at(queries * k), -1), distances(at(queries * k)) {}
};

// What was searched, and how.
template <typename Data>
struct Search {
  const std::vector<Data>& data;
  const std::vector<Data>& queries;
  Size features;
  Size k;
  double scale;
  bool among_themselves; // the queries are the data
  bool exact;
};

// Neighbours are others, each of them once, nearest first, with their distances; if they are
// exact, no other is nearer than the last. Distances that vanish in Real may be in any order.
template <typename Data, typename Real>
void check_found(const Found<Real>& found, const Search<Data>& search) {
  const auto& [data, queries, features, k, scale, among_themselves, exact] = search;
  const Size rows = static_cast<Size>(data.size()) / features;
  const Size count = static_cast<Size>(queries.size()) / features;
  const double tolerance = sizeof(Real) == 4 || sizeof(Data) == 4 ? 1e-5 : 1e-12;
  const auto smallest = static_cast<double>(std::numeric_limits<float>::min());
  for (Size i = 0; i < count; ++i) {
    std::set<PointId> seen;
    double last = 0;
    for (Size e = i * k; e < (i + 1) * k; ++e) {
      const PointId id = found.indices[at(e)];
      EXPECT(id >= 0 && id < rows && (!among_themselves || id != i) && seen.insert(id).second);
      const auto told = static_cast<double>(found.distances[at(e)]);
      EXPECT(told >= last);
      const double own = distance(queries, i, data, id, features, scale);
      EXPECT(std::abs(told - own) <= tolerance * own + smallest);
      last = told;
    }
    for (Size j = 0; exact && j < rows; ++j) {
      if (!seen.contains(static_cast<PointId>(j)) && !(among_themselves && j == i)) {
        EXPECT(distance(queries, i, data, j, features, scale) >= last * (1 - tolerance) - smallest);
      }
    }
  }
}

template <typename Data, typename Real>
void search(Input& input, ThreadTeam& team) {
  const int kind = input.ConsumeIntegralInRange<int>(0, 2);
  const Size features = input.ConsumeIntegralInRange<Size>(1, 40);
  // Cells have 256 points: now and then several of them, as copies of what the bytes say.
  const Size given = input.ConsumeIntegralInRange<Size>(2, 30);
  const Size copies = input.ConsumeIntegral<std::uint8_t>() % 16 == 0
                          ? input.ConsumeIntegralInRange<Size>(1, 30)
                          : 1;
  const double largest = static_cast<double>(std::numeric_limits<Data>::max());
  std::vector<Data> data = numbers<Data>(input, given * features, largest);
  for (Size copy = 1; copy < copies; ++copy) {
    for (Size c = 0; c < given * features; ++c) {
      const Data value = data[at(c)];
      data.push_back(c % 7 == copy % 7 ? -value : value);
    }
  }
  const Size rows = given * copies;
  const Frame frame = poor_frame(data, features);
  const Projected<Data> projected(data, features, frame);
  std::atomic<Size> done{0};
  if (kind == 2) {
    const Size k = input.ConsumeIntegralInRange<Size>(1, std::min<Size>(rows, 40));
    const Size count = input.ConsumeIntegralInRange<Size>(1, 10);
    const std::vector<Data> queries =
        numbers<Data>(input, count * features, std::min(largest, 1e15 / frame.origin.scale));
    const Projected<Data> asked(queries, features, frame);
    Found<Real> found(count, k);
    exact_neighbors<Data>(
        {projected.points(), k, found.indices.data(), found.distances.data(), &done},
        asked.points(), team);
    check_found(found, Search<Data>{data, queries, features, k, frame.origin.scale, false, true});
    return;
  }
  const Size k = input.ConsumeIntegralInRange<Size>(1, std::min<Size>(rows - 1, 40));
  Found<Real> found(rows, k);
  const NeighborsRequest<Data> request{projected.points(), k, found.indices.data(),
                                       found.distances.data(), &done};
  if (kind == 1) {
    const std::vector<PointId> sample = permutation(input, rows);
    const double recall = approximate_neighbors(request, {}, sample, team);
    EXPECT(recall >= 0 && recall <= 1);
  } else {
    exact_neighbors(request, team);
  }
  EXPECT(done == rows);
  check_found(found, Search<Data>{data, data, features, k, frame.origin.scale, true, kind == 0});
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  choose_level(input);
  ThreadTeam team(choose_threads(input));
  with_real(input, [&]<typename Data>() {
    with_real(input, [&]<typename Real>() { search<Data, Real>(input, team); });
  });
  return 0;
}
