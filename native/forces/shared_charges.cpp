// Charges of a grid that several processes share, with the bits that one process gives it.
//
// A node's charge is a sum in the order of the points' numbers, strips with even numbers before
// those with odd ones (forces/repulsive_fft.cpp). Sums of what each process has would have other
// bits. So a process makes some of the sums, but those whole: it is sent what points of others it
// needs. In Morton order its own points fill a compact region, and others' come from around it.
//
// 1. Count own points by the tiles that they reach into. Exchanged: the counts.
// 2. A tile is charged by the process with most of these points.
// 3. Exchanged: the positions of points that reach into others' tiles. What arrives is in the order
//    of processes, and so in that of numbers.
// 4. After the charging. Exchanged: charged tiles; the others are empty everywhere.
#include "forces/shared_charges.hpp"

#include <algorithm>
#include <numeric>

namespace acctsne {
namespace {

// Few enough that their counts are a small part of what is exchanged.
constexpr Size kMostTilesInStrip = 32;

Rows parts_of(Rows rows) {
  return {rows.begin / kPointsPerSum, chunk_count(rows.end, kPointsPerSum)};
}

} // namespace

GridTiles::GridTiles(const Size (&grid_nodes)[2])
    : nodes{grid_nodes[0], grid_nodes[1]}, strips(chunk_count(nodes[0], kStripColumns)),
      rows(std::max(kStripColumns, chunk_count(nodes[1], kMostTilesInStrip))) {
  a_strip = chunk_count(nodes[1], rows);
}

// Calls body(tile) for the one to four tiles that a point reaches into, the one of its first node
// first.
template <typename Real, int Dims>
template <typename Body>
void SharedCharges<Real, Dims>::for_tiles(const GridGeometry<Real>& geometry, const Real* point,
                                          Body&& body) const {
  Size first[2] = {};
  for (int axis = 0; axis < Dims; ++axis) {
    // In the arithmetic of the kernels.
    const Real node = (point[axis] - geometry.lower[axis]) * geometry.inverse_step;
    first[axis] = static_cast<std::int32_t>(node);
  }
  const Size rows = tiles_.rows;
  const Size strips[2] = {first[0] / kStripColumns, (first[0] + 3) / kStripColumns};
  const Size along[2] = {first[1] / rows, (first[1] + 3) / rows};
  for (int x = 0; x < (strips[1] > strips[0] ? 2 : 1); ++x) {
    for (int y = 0; y < (along[1] > along[0] ? 2 : 1); ++y) {
      body(strips[x] * tiles_.a_strip + along[y]);
    }
  }
}

// Calls body(process) for each process that a point's charge is needed by.
template <typename Real, int Dims>
template <typename Body>
void SharedCharges<Real, Dims>::for_owners(const GridGeometry<Real>& geometry, const Real* point,
                                           Body&& body) const {
  std::int32_t seen[4];
  int count = 0;
  for_tiles(geometry, point, [&](Size tile) {
    const std::int32_t owner = owners_[at(tile)];
    if (std::find(seen, seen + count, owner) == seen + count) {
      seen[count++] = owner;
      body(owner);
    }
  });
}

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::send_points(const GridGeometry<Real>& geometry,
                                            const Size (&nodes)[2], const Real* points, Size count,
                                            Communicator& processes, ThreadTeam& team) {
  const Rows own = rows_of(processes, count);
  tiles_ = GridTiles(nodes);
  count_points(geometry, points, own, processes, team);
  choose_owners(processes.size());

  // How many go where, by block.
  const auto everyone = static_cast<Size>(processes.size());
  const Size blocks = chunk_count(own.end - own.begin, kBlockRows);
  places_.assign(at(blocks * everyone), 0);
  const auto in_block = [&](Size row) {
    return places_.data() + (row - own.begin) / kBlockRows * everyone;
  };
  parallel_for(team, own, kBlockRows, [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      for_owners(geometry, points + i * Dims, [&](std::int32_t to) { ++in_block(begin)[to]; });
    }
  });
  // Of each process, by part.
  const Rows parts = parts_of(own);
  std::vector<Size> sent(at(everyone * (parts.end - parts.begin)), 0);
  std::vector<Size> sent_ends;
  std::vector<Size> ends;
  Size next = 0;
  for (Size to = 0; to < everyone; ++to) {
    Size* in_parts = sent.data() + to * (parts.end - parts.begin);
    for (Size begin = own.begin; begin < own.end; begin += kBlockRows) {
      const Size leaving = in_block(begin)[to];
      in_parts[begin / kPointsPerSum - parts.begin] += leaving;
      in_block(begin)[to] = next;
      next += leaving;
    }
    sent_ends.push_back((to + 1) * (parts.end - parts.begin) * Size{sizeof(Size)});
    ends.push_back(next * Dims * Size{sizeof(Real)});
  }
  leaving_.resize(at(next * Dims));
  parallel_for(team, own, kBlockRows, [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      for_owners(geometry, points + i * Dims, [&](std::int32_t to) {
        std::copy_n(points + i * Dims, Dims, leaving_.data() + in_block(begin)[to]++ * Dims);
      });
    }
  });

  std::vector<Size> received_ends;
  Size all_parts = 0;
  for (int rank = 0; rank < processes.size(); ++rank) {
    const Rows theirs = parts_of(rows_of(rank, processes.size(), count));
    all_parts += theirs.end - theirs.begin;
    received_ends.push_back(all_parts * Size{sizeof(Size)});
  }
  std::vector<Size> received(at(all_parts));
  processes.exchange(reinterpret_cast<const std::byte*>(sent.data()), sent_ends,
                     reinterpret_cast<std::byte*>(received.data()), received_ends);
  part_ends_.assign(at(chunk_count(count, kPointsPerSum)), 0);
  std::vector<Size> arrived_ends;
  Size arrived = 0;
  const Size* in_part = received.data();
  for (int rank = 0; rank < processes.size(); ++rank) {
    const Rows theirs = parts_of(rows_of(rank, processes.size(), count));
    for (Size part = theirs.begin; part < theirs.end; ++part) {
      arrived += *in_part++;
      part_ends_[at(part)] = arrived;
    }
    arrived_ends.push_back(arrived * Dims * Size{sizeof(Real)});
  }
  arrived_.resize(at(arrived * Dims));
  processes.exchange(reinterpret_cast<const std::byte*>(leaving_.data()), ends,
                     reinterpret_cast<std::byte*>(arrived_.data()), arrived_ends);
}

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::count_points(const GridGeometry<Real>& geometry, const Real* points,
                                             Rows own, Communicator& processes, ThreadTeam& team) {
  const Size numbers = tiles_.count() + tiles_.strips;
  of_workers_.assign(at(team.size() * numbers), 0);
  team.for_chunks(chunk_count(own.end - own.begin, kBlockRows), [&](Size block, int worker) {
    std::uint32_t* by_tile = of_workers_.data() + worker * numbers;
    std::uint32_t* by_strip = by_tile + tiles_.count();
    const Size begin = own.begin + block * kBlockRows;
    for (Size i = begin; i < std::min(begin + kBlockRows, own.end); ++i) {
      Size strip = -1;
      for_tiles(geometry, points + i * Dims, [&](Size tile) {
        ++by_tile[tile];
        strip = strip < 0 ? tile / tiles_.a_strip : strip;
      });
      ++by_strip[strip];
    }
  });
  counts_.resize(at(processes.size() * numbers));
  std::uint32_t* mine = counts_.data() + processes.rank() * numbers;
  std::copy_n(of_workers_.data(), numbers, mine);
  for (int worker = 1; worker < team.size(); ++worker) {
    for (Size number = 0; number < numbers; ++number) {
      mine[number] += of_workers_[at(worker * numbers + number)];
    }
  }
  std::vector<Size> ends(at(processes.size()));
  for (int rank = 0; rank < processes.size(); ++rank) {
    ends[at(rank)] = (rank + 1) * numbers * Size{sizeof(std::uint32_t)};
  }
  processes.gather(reinterpret_cast<std::byte*>(counts_.data()), ends);
}

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::choose_owners(int processes) {
  const Size numbers = tiles_.count() + tiles_.strips;
  owners_.assign(at(tiles_.count()), kNobody);
  for (Size tile = 0; tile < tiles_.count(); ++tile) {
    std::uint32_t most = 0;
    for (std::int32_t rank = 0; rank < processes; ++rank) {
      const std::uint32_t theirs = counts_[at(rank * numbers + tile)];
      if (theirs > most) {
        most = theirs;
        owners_[at(tile)] = rank;
      }
    }
  }
  in_strips_.assign(at(tiles_.strips), 0);
  for (Size strip = 0; strip < tiles_.strips; ++strip) {
    for (int rank = 0; rank < processes; ++rank) {
      in_strips_[at(strip)] += counts_[at(rank * numbers + tiles_.count() + strip)];
    }
  }
}

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::gather_tiles(GridConvolution<Real>& grid, Communicator& processes,
                                             ThreadTeam& team) {
  tile_starts_.assign(at(tiles_.count()), 0);
  std::vector<Size> ends;
  Size next = 0;
  for (int rank = 0; rank < processes.size(); ++rank) {
    for (Size tile = 0; tile < tiles_.count(); ++tile) {
      if (owners_[at(tile)] == rank) {
        tile_starts_[at(tile)] = next;
        next += tiles_.nodes_of(tile);
      }
    }
    ends.push_back(next * Size{sizeof(Real)});
  }
  charges_.resize(at(next));
  // Calls body(nodes of the grid, the same in charges_, how many) for the columns of tiles.
  const auto for_columns = [&](auto&& wanted, auto&& body) {
    team.for_chunks(tiles_.count(), [&](Size tile, int) {
      if (!wanted(owners_[at(tile)])) {
        return;
      }
      const Rows rows = tiles_.rows_of(tile);
      const Rows columns = tiles_.columns_of(tile);
      Real* charges = charges_.data() + tile_starts_[at(tile)];
      for (Size x = columns.begin; x < columns.end; ++x, charges += rows.end - rows.begin) {
        body(grid.column(x) + rows.begin, charges, rows.end - rows.begin);
      }
    });
  };
  const std::int32_t self = processes.rank();
  for_columns(
      [self](std::int32_t owner) { return owner == self; },
      [](const Real* nodes, Real* charges, Size count) { std::copy_n(nodes, count, charges); });
  processes.gather(reinterpret_cast<std::byte*>(charges_.data()), ends);
  for_columns(
      [self](std::int32_t owner) { return owner != self && owner != kNobody; },
      [](Real* nodes, const Real* charges, Size count) { std::copy_n(charges, count, nodes); });
}

template class SharedCharges<float, 1>;
template class SharedCharges<float, 2>;
template class SharedCharges<double, 1>;
template class SharedCharges<double, 2>;

} // namespace acctsne
