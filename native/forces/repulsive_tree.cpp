// Step 6, repulsive forces, Barnes-Hut.
//
// 1. Groups: the largest cells of at most kGroupPoints points. They must be cells: a slice of the
//    Morton order that crosses one of its jumps has a huge box.
// 2. One walk per group lists what acts on it. A cell stands for its points when side < theta *
//    distance, the full side and the distance of its centre of mass from the group's box.
// 3. Every group meets its list (kernels/repulsive_tree-inl.hpp).
//
// Tree, groups and lists are kept until the points have moved (Verlet's neighbour lists). What acts
// are the present positions, and the present mass centres and moments of the cells.
#include "forces/repulsive_tree.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

namespace acctsne {
namespace {

// Groups of one task: neighbours in Morton order take nearly the same way through the tree, so its
// nodes stay in cache. More leave the threads' shares uneven for small data (benchmarks/steps.py,
// docs/tuning.md).
constexpr Size kGroupsPerChunk = 2;
// Subtrees of one task that looks for groups: some microseconds.
constexpr Size kSubtreesPerChunk = 4;
// Points of one task that looks how far they have moved: some ten microseconds.
constexpr Size kPointsPerChunk = 16384;

// How far points may move before the tree is built anew, as a part of the distance between
// neighbours on a lattice that fills the tree's box. More makes a tree serve longer and the lists
// longer (benchmarks/steps.py --dataset digits, docs/tuning.md).
constexpr double kMovement = 0.1;
// The more points, the further the fastest of them moves, and the closer they lie.
constexpr Size kMostKept = 5000;

// Costs in nanoseconds, calibrated by benchmarks/methods.py.
constexpr double kFixed = 5'000;
constexpr double kPointAndLevel = 10; // times log2 of the points
constexpr double kAnyPower = 1.6;     // how much longer with another exponent than 1

} // namespace

// With second moments and the distance taken from the group's box, cells may be accepted later than
// scikit-learn does, which has the mass alone. At 1.8 the force error is still below scikit-learn's
// at the same angle (benchmarks/force_error.py, docs/tuning.md). 1.0 is the largest theta that was
// measured.
//
// A larger exponent makes the similarity steeper and the expansion worse, hence the smaller theta.
double theta_for_angle(double angle, double exponent) {
  return std::min(1.8 * angle, 1.0) * (exponent > 1 ? 0.8 : 1);
}

template <typename Real, int Dims>
TreeRepulsion<Real, Dims>::TreeRepulsion(double angle, double exponent) : exponent_(exponent) {
  const double theta = theta_for_angle(angle, exponent);
  accept_.theta2 = static_cast<Real>(theta * theta);
}

template <typename Real, int Dims>
double TreeRepulsion<Real, Dims>::cost(const MapView<Real>& map) const {
  const auto n = static_cast<double>(map.count);
  return kFixed + (exponent_ == 1 ? 1 : kAnyPower) * kPointAndLevel * n * std::log2(n + 2);
}

template <typename Real, int Dims>
void TreeRepulsion<Real, Dims>::forces(const MapView<Real>& map, Communicator& processes,
                                       Real* force, RowSums& z, StepSeconds& seconds,
                                       ThreadTeam& team) {
  if (tree_fits(map, seconds, team)) {
    const Step step("summarisation", seconds.summarization);
    tree_.summarize(map.points, team);
  } else {
    make_tree(map, seconds, team);
  }
  const Step step("repulsive", seconds.repulsive);
  const Rows own = rows_of(processes, map.count);
  z_of_rows_.resize(at(map.count)); // own rows are all written
  push_groups(own, force, team);
  add_rows(z, z_of_rows_.data(), own, team);
}

template <typename Real, int Dims>
void TreeRepulsion<Real, Dims>::keep(std::span<const Real> points, ThreadTeam& team) {
  built_from_.clear();
  if (points.empty()) {
    return;
  }
  const Bounds<Real> bounds(points.data(), static_cast<Size>(points.size()) / Dims, Dims);
  StepSeconds unused;
  make_tree(bounds.map(), unused, team);
}

// Whether no point has moved further than the lists allow for, apart from a common shift and
// scaling, which change no ratio of a side to a distance. A map grows by such a scaling above all.
template <typename Real, int Dims>
bool TreeRepulsion<Real, Dims>::tree_fits(const MapView<Real>& map, StepSeconds& seconds,
                                          ThreadTeam& team) {
  const Step step("tree building", seconds.tree_building);
  const Real* points = map.points;
  const Size count = map.count;
  const Real* lower = map.lower;
  const Real* upper = map.upper;
  if (built_from_.empty() || static_cast<Size>(built_from_.size()) != count * Dims) {
    return false;
  }
  Real extent = 0;
  Real built_extent = 0;
  for (int axis = 0; axis < Dims; ++axis) {
    extent += upper[axis] - lower[axis];
    built_extent += built_upper_[axis] - built_lower_[axis];
  }
  const Real scale = built_extent > 0 ? extent / built_extent : Real(1);
  Real shift[Dims];
  for (int axis = 0; axis < Dims; ++axis) {
    const Real built_middle = (built_lower_[axis] + built_upper_[axis]) / 2;
    shift[axis] = (lower[axis] + upper[axis]) / 2 - scale * built_middle;
  }
  const Real allowed = scale * accept_.movement;
  const Size moved = parallel_sum(team, count, kPointsPerChunk, moved_, [&](Size begin, Size end) {
    Size found = 0;
    for (Size i = begin; i < end; ++i) {
      for (int axis = 0; axis < Dims; ++axis) {
        const Size c = i * Dims + axis;
        const Real expected = shift[axis] + scale * built_from_[at(c)];
        found += std::abs(points[c] - expected) <= allowed ? 0 : 1; // 1 also if it is not finite
      }
    }
    return found;
  });
  return moved == 0;
}

template <typename Real, int Dims>
void TreeRepulsion<Real, Dims>::make_tree(const MapView<Real>& map, StepSeconds& seconds,
                                          ThreadTeam& team) {
  const Real* points = map.points;
  const Size count = map.count;
  const Real* lower = map.lower;
  const Real* upper = map.upper;
  {
    const Step step("tree building", seconds.tree_building);
    built_from_.clear(); // until all is done
    tree_.build(points, count, lower, upper, team);
    const double spacing =
        static_cast<double>(tree_.box().side) * std::pow(static_cast<double>(count), -1.0 / Dims);
    accept_.movement = count <= kMostKept ? static_cast<Real>(kMovement * spacing) : Real(0);
  }
  {
    const Step step("summarisation", seconds.summarization);
    tree_.summarize(points, team);
  }
  const Step step("repulsive", seconds.repulsive);
  find_groups(team);
  const bool lists_are_whole = make_lists(team);
  // Points that are all in one place may part, and a list that is too short is made anew each time.
  const auto is_large = [](PointGroup group) { return group.end - group.begin > kGroupPoints; };
  if (accept_.movement > 0 && lists_are_whole && std::ranges::none_of(groups_, is_large)) {
    built_from_.assign(points, points + count * Dims);
    std::copy_n(lower, Dims, built_lower_);
    std::copy_n(upper, Dims, built_upper_);
  }
}

static_assert(kGroupPoints <= kSubtreePoints); // so that all groups lie in subtrees

template <typename Real, int Dims>
void TreeRepulsion<Real, Dims>::find_groups(ThreadTeam& team) {
  const auto subtrees = static_cast<Size>(tree_.subtree_count());
  group_starts_.resize(at(subtrees));
  parallel_for(team, subtrees, kSubtreesPerChunk, [&](Size begin, Size end) {
    for (Size subtree = begin; subtree < end; ++subtree) {
      std::size_t count = 0;
      visit_groups(subtree, [&](PointGroup) { ++count; });
      group_starts_[at(subtree)] = count;
    }
  });
  std::size_t groups = 0;
  for (std::size_t& start : group_starts_) {
    groups += std::exchange(start, groups);
  }
  groups_.resize(groups);
  parallel_for(team, subtrees, kSubtreesPerChunk, [&](Size begin, Size end) {
    for (Size subtree = begin; subtree < end; ++subtree) {
      PointGroup* to = groups_.data() + group_starts_[at(subtree)];
      visit_groups(subtree, [&](PointGroup group) { *to++ = group; });
    }
  });
}

template <typename Real, int Dims>
template <typename Visit>
void TreeRepulsion<Real, Dims>::visit_groups(Size subtree, Visit&& visit) const {
  const auto nodes = tree_.nodes();
  const auto [first, end] = tree_.nodes_of_subtree(subtree);
  for (NodeId id = first; id < end;) {
    const Node<Real, Dims>& node = nodes[at(id)];
    if (node.mass() > kGroupPoints && !node.leaf) {
      ++id;
      continue;
    }
    // A leaf of more points is a smallest cell. If they are not all in one place, which takes an
    // outlier that stretches the tree's box, it is cut into several groups.
    const PointId most = node.coincident ? node.end - node.begin : kGroupPoints;
    for (PointId begin = node.begin; begin < node.end; begin += most) {
      visit(PointGroup{begin, std::min(begin + most, node.end)});
    }
    id = node.skip;
  }
}

// Returns whether all lists have room for all of their sources.
template <typename Real, int Dims>
bool TreeRepulsion<Real, Dims>::make_lists(ThreadTeam& team) {
  if (groups_.size() > lists_room_) {
    const std::size_t room = std::max(groups_.size(), lists_room_ + lists_room_ / 2);
    lists_ = make_large_array<InteractionList<Dims>>(room, team.size());
    lists_room_ = room;
  }
  const TreeView<Real, Dims> view = tree_.view();
  const auto list_sources = std::get<Dims - 1>(kernels().tree.of<Real>().list_sources);
  std::atomic<bool> are_whole = true;
  parallel_for(team, static_cast<Size>(groups_.size()), kGroupsPerChunk, [&](Size begin, Size end) {
    for (auto g = static_cast<std::size_t>(begin); g < at(end); ++g) {
      list_sources(view, groups_[g], accept_, 0, lists_[g]);
      if (lists_[g].next < view.node_count) {
        are_whole.store(false, std::memory_order_relaxed);
      }
    }
  });
  return are_whole;
}

template <typename Real, int Dims>
void TreeRepulsion<Real, Dims>::push_groups(Rows own, Real* force, ThreadTeam& team) {
  const TreeView<Real, Dims> view = tree_.view();
  const auto exponent = static_cast<Real>(exponent_);
  const auto list_sources = std::get<Dims - 1>(kernels().tree.of<Real>().list_sources);
  const auto push = std::get<Dims - 1>(kernels().tree.of<Real>().forces(exponent_).push_group);
  const bool owns_all = own.end - own.begin == static_cast<Size>(z_of_rows_.size());
  const auto row = [&](PointId place) { return Size{view.order[place]}; };
  // Who owns one of a group's points works on all of them; the owner of the first counts its z.
  const auto concerns = [&](PointGroup group) {
    return owns_all || std::any_of(view.order + group.begin, view.order + group.end,
                                   [&](PointId r) { return own.has(r); });
  };
  parallel_for(team, static_cast<Size>(groups_.size()), kGroupsPerChunk, [&](Size begin, Size end) {
    for (auto g = static_cast<std::size_t>(begin); g < at(end); ++g) {
      const PointGroup group = groups_[g];
      if (!concerns(group)) {
        continue;
      }
      for (PointId place = group.begin; place < group.end; ++place) {
        std::fill_n(force + row(place) * Dims, Dims, Real(0));
        z_of_rows_[at(row(place))] = 0;
      }
      double z = push(view, group, lists_[g], true, exponent, force);
      // What the list has no room for.
      InteractionList<Dims> more;
      for (NodeId next = lists_[g].next; next < view.node_count; next = more.next) {
        list_sources(view, group, accept_, next, more);
        z += push(view, group, more, false, exponent, force);
      }
      z_of_rows_[at(row(group.begin))] = z;
    }
  });
}

namespace {

// The whole tree acts on a position.
template <typename Real, int Dims>
class TreeField final : public RepulsiveField<Real> {
public:
  TreeField(const MapView<Real>& map, const RepulsionOptions& options, ThreadTeam& team)
      : exponent_(static_cast<Real>(options.output_kernel.exponent)),
        push_(std::get<Dims - 1>(
            kernels().tree.of<Real>().forces(options.output_kernel.exponent).push_position)) {
    const double theta = theta_for_angle(options.angle, options.output_kernel.exponent);
    accept_.theta2 = static_cast<Real>(theta * theta);
    tree_.build(map.points, map.count, map.lower, map.upper, team);
    tree_.summarize(map.points, team);
  }

  double at(const Real* u, Real* force) const override {
    return push_(tree_.view(), u, accept_, exponent_, force);
  }

private:
  Real exponent_;
  typename TreeForceKernels<Real>::template PushPosition<Dims> push_;
  Acceptance<Real> accept_{};
  Tree<Real, Dims> tree_;
};

template <typename Real>
constexpr MethodMakers<Real> makers = {
    .repulsion =
        [](int dims, const RepulsionOptions& options) {
          return with_dims(dims, [&](auto d) -> std::unique_ptr<Repulsion<Real>> {
            return std::make_unique<TreeRepulsion<Real, d()>>(options.angle,
                                                              options.output_kernel.exponent);
          });
        },
    .field =
        [](int dims, const MapView<Real>& map, const RepulsionOptions& options, ThreadTeam& team) {
          return with_dims(dims, [&](auto d) -> std::unique_ptr<RepulsiveField<Real>> {
            return std::make_unique<TreeField<Real, d()>>(map, options, team);
          });
        },
};

} // namespace

constinit const Both<MethodMakers> kTreeMakers = {makers<float>, makers<double>};

#define ACCTSNE_INSTANTIATE(Real, Dims) template class TreeRepulsion<Real, Dims>;
ACCTSNE_FOR_REALS_AND_DIMS(ACCTSNE_INSTANTIATE)
#undef ACCTSNE_INSTANTIATE

} // namespace acctsne
