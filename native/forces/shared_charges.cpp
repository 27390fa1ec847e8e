// Charges of a grid that several processes share, with the bits that one process gives it.
//
// A node's charge is a sum in the order of the points' numbers, strips with even numbers before
// those with odd ones (forces/charge_spreader.cpp). Sums of what each process has would have other
// bits. So a process makes some of the sums, but those whole: it is sent what points of others it
// needs. In Morton order its own points fill a compact region, and others' come from around it.
//
// 1. Name for each own point the tiles that it reaches into, count points by tile. Exchanged: the
//    counts.
// 2. A tile is charged by the process with most of these points.
// 3. Exchanged: the positions of points that reach into others' tiles. What arrives is in the order
//    of processes, and so in that of numbers.
// 4. After the charging. Exchanged: which segments of charged tiles have charges, then these
//    segments; the others are empty everywhere. Of a wide grid, which is convolved in blocks, a
//    process gets what those of its points take (forces/shared_blocks.hpp).
#include "forces/shared_charges.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>

namespace acctsne {
namespace {

constexpr Size kBitsOfWord = 64;

// What a point's tiles are named by: four times the number of the tile of its first node, and
// whether it reaches beyond it along x and along y.
constexpr std::uint32_t kReaches = 4;
constexpr std::uint32_t kReachesX = 1;
constexpr std::uint32_t kReachesY = 2;

Rows parts_of(Rows rows) {
  return {rows.begin / kPointsPerSum, chunk_count(rows.end, kPointsPerSum)};
}

} // namespace

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::divide(const Size (&nodes)[2]) {
  tiles_ = GridTiles(nodes);
  in_blocks_ = false;
}

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::divide(const Size (&nodes)[2], const GridBlocks& blocks) {
  tiles_ = GridTiles(nodes);
  in_blocks_ = true;
  blocks_.divide(blocks);
}

// Calls body(tile) for the one to four tiles of a name, the one of the first node first.
template <typename Real, int Dims>
template <typename Body>
void SharedCharges<Real, Dims>::for_tiles(Size name, Body&& body) const {
  const Size tile = name / kReaches;
  const auto reaches = static_cast<std::uint32_t>(name % kReaches);
  body(tile);
  if ((reaches & kReachesY) != 0) {
    body(tile + 1);
  }
  if ((reaches & kReachesX) != 0) {
    body(tile + tiles_.per_strip);
  }
  if (reaches == (kReachesX | kReachesY)) {
    body(tile + tiles_.per_strip + 1);
  }
}

// Calls body(process) for each process that the charges of points with this name are needed by.
template <typename Real, int Dims>
template <typename Body>
void SharedCharges<Real, Dims>::for_owners(Size name, Body&& body) const {
  std::int32_t seen[4];
  int count = 0;
  for_tiles(name, [&](Size tile) {
    const std::int32_t owner = owners_[at(tile)];
    if (std::find(seen, seen + count, owner) == seen + count) {
      seen[count++] = owner;
      body(owner);
    }
  });
}

// Calls body(process, first point, count) for runs of points, in their order, that a process needs.
// Nearly all points are needed by one, and it is the one that the points before them went to.
template <typename Real, int Dims>
template <typename Body>
void SharedCharges<Real, Dims>::for_runs(Rows own, Size begin, Size end, Body&& body) const {
  const auto name = [&](Size i) { return names_[at(i - own.begin)]; };
  for (Size i = begin; i < end;) {
    const std::int32_t owner = sole_owners_[name(i)];
    const Size first = i++;
    if (owner == kSeveral) {
      for_owners(name(first), [&](std::int32_t to) { body(to, first, 1); });
      continue;
    }
    while (i < end && sole_owners_[name(i)] == owner) {
      ++i;
    }
    body(owner, first, i - first);
  }
}

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::send_points(const GridGeometry<Real>& geometry, const Real* points,
                                            Size count, Communicator& processes, ThreadTeam& team) {
  const Rows own = rows_of(processes, count);
  count_points(geometry, points, own, processes, team);
  choose_owners(processes.size());
  if (in_blocks_) {
    blocks_.assign(tiles_, counts_, processes.size());
  }

  // How many go where, by block.
  const auto everyone = static_cast<Size>(processes.size());
  const Size blocks = chunk_count(own.end - own.begin, kBlockRows);
  places_.assign(at(blocks * everyone), 0);
  const auto in_block = [&](Size row) {
    return places_.data() + (row - own.begin) / kBlockRows * everyone;
  };
  parallel_for(team, own, kBlockRows, [&](Size begin, Size end) {
    for_runs(own, begin, end, [&](std::int32_t to, Size, Size run) { in_block(begin)[to] += run; });
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
    sent_ends.push_back((to + 1) * (parts.end - parts.begin));
    ends.push_back(next);
  }
  leaving_.resize(at(next * Dims));
  parallel_for(team, own, kBlockRows, [&](Size begin, Size end) {
    for_runs(own, begin, end, [&](std::int32_t to, Size first, Size run) {
      Size& place = in_block(begin)[to];
      std::copy_n(points + first * Dims, run * Dims, leaving_.data() + place * Dims);
      place += run;
    });
  });

  std::vector<Size> received_ends;
  Size all_parts = 0;
  for (int rank = 0; rank < processes.size(); ++rank) {
    const Rows theirs = parts_of(rows_of(rank, processes.size(), count));
    all_parts += theirs.end - theirs.begin;
    received_ends.push_back(all_parts);
  }
  std::vector<Size> received(at(all_parts));
  exchange_items(processes, sent.data(), sent_ends, received.data(), received_ends);
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
    arrived_ends.push_back(arrived);
  }
  arrived_.resize(at(arrived * Dims));
  exchange_items(processes, leaving_.data(), ends, arrived_.data(), arrived_ends, Dims);
}

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::count_points(const GridGeometry<Real>& geometry, const Real* points,
                                             Rows own, Communicator& processes, ThreadTeam& team) {
  const Size names = tiles_.count() * kReaches;
  names_.resize(at(own.end - own.begin));
  of_workers_.assign(at(team.size() * names), 0);
  constexpr int strip_bits = std::countr_zero(static_cast<std::size_t>(kStripColumns));
  const int row_bits = std::countr_zero(static_cast<std::size_t>(tiles_.rows));
  const auto per_strip = static_cast<std::uint32_t>(tiles_.per_strip);
  parallel_for(team, own, kBlockRows, [&](Size begin, Size end, int worker) {
    std::uint32_t* by_name = of_workers_.data() + worker * names;
    for (Size i = begin; i < end; ++i) {
      std::uint32_t first[2] = {};
      for (int axis = 0; axis < Dims; ++axis) {
        // In the arithmetic of the kernels.
        const Real node = (points[i * Dims + axis] - geometry.lower[axis]) * geometry.inverse_step;
        first[axis] = static_cast<std::uint32_t>(static_cast<std::int32_t>(node));
      }
      const std::uint32_t strip = first[0] >> strip_bits;
      const std::uint32_t along = first[1] >> row_bits;
      const bool reaches_x = (first[0] + 3) >> strip_bits > strip;
      const bool reaches_y = (first[1] + 3) >> row_bits > along;
      const std::uint32_t name = (strip * per_strip + along) * kReaches +
                                 (reaches_x ? kReachesX : 0) + (reaches_y ? kReachesY : 0);
      names_[at(i - own.begin)] = name;
      ++by_name[name];
    }
  });
  // By tile, then by strip.
  const Size numbers = tiles_.count() + tiles_.strips;
  counts_.assign(at(processes.size() * numbers), 0);
  std::uint32_t* mine = counts_.data() + processes.rank() * numbers;
  for (int worker = 0; worker < team.size(); ++worker) {
    const std::uint32_t* by_name = of_workers_.data() + worker * names;
    for (Size name = 0; name < names; ++name) {
      if (by_name[name] > 0) {
        for_tiles(name, [&](Size tile) { mine[tile] += by_name[name]; });
        mine[tiles_.count() + name / kReaches / tiles_.per_strip] += by_name[name];
      }
    }
  }
  std::vector<Size> ends(at(processes.size()));
  for (int rank = 0; rank < processes.size(); ++rank) {
    ends[at(rank)] = (rank + 1) * numbers;
  }
  gather_items(processes, counts_.data(), ends);
}

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::choose_owners(int processes) {
  const Size numbers = tiles_.count() + tiles_.strips;
  // More than there are, for the names that would lead beyond the grid and that no point has.
  owners_.assign(at(tiles_.count() + tiles_.per_strip + 1), kNobody);
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
  sole_owners_.resize(at(tiles_.count() * kReaches));
  for (Size name = 0; name < tiles_.count() * kReaches; ++name) {
    std::int32_t& sole = sole_owners_[at(name)];
    sole = owners_[at(name / kReaches)];
    for_tiles(name, [&](Size tile) { sole = owners_[at(tile)] == sole ? sole : kSeveral; });
  }
  in_strips_.assign(at(tiles_.strips), 0);
  for (Size strip = 0; strip < tiles_.strips; ++strip) {
    for (int rank = 0; rank < processes; ++rank) {
      in_strips_[at(strip)] += counts_[at(rank * numbers + tiles_.count() + strip)];
    }
  }
}

// Calls body(index, nodes of the grid, how many) for the segments of a tile.
template <typename Real, int Dims>
template <typename Body>
void SharedCharges<Real, Dims>::for_segments(Grid<Real>& grid, Size tile, Body&& body) const {
  const Rows rows = tiles_.rows_of(tile);
  const Rows columns = tiles_.columns_of(tile);
  Size index = 0;
  for (Size x = columns.begin; x < columns.end; ++x) {
    for (Size y = rows.begin; y < rows.end; y += kSegmentNodes) {
      body(index++, grid.column(x) + y, std::min(kSegmentNodes, rows.end - y));
    }
  }
}

// Calls body(nodes of the grid, the same in a shipment, how many) for what is charged of its tiles.
template <typename Real, int Dims>
template <typename Body>
void SharedCharges<Real, Dims>::for_charged(Grid<Real>& grid, Shipment& shipment, ThreadTeam& team,
                                            Body&& body) const {
  const auto tiles = static_cast<Size>(shipment.tiles.size());
  const Size words = words_of_tile();
  team.for_chunks(tiles, [&](Size place, int) {
    const std::uint64_t* charged = shipment.charged.data() + place * words;
    Real* charges = shipment.charges.data() + shipment.starts[at(place)];
    for_segments(grid, shipment.tiles[at(place)], [&](Size index, Real* nodes, Size count) {
      if ((charged[index / kBitsOfWord] >> index % kBitsOfWord & 1) != 0) {
        body(nodes, charges, count);
        charges += kSegmentNodes;
      }
    });
  });
}

template <typename Real, int Dims>
Size SharedCharges<Real, Dims>::words_of_tile() const {
  return chunk_count(kStripColumns * tiles_.rows / kSegmentNodes, kBitsOfWord);
}

// Own tiles that others need, and others' that this process needs.
template <typename Real, int Dims>
void SharedCharges<Real, Dims>::list_tiles(const Communicator& processes) {
  const int self = processes.rank();
  const auto needs = [&](int process, Size tile) {
    return !in_blocks_ || blocks_.needs(process, tiles_, tile);
  };
  of_owners_.resize(at(processes.size()));
  for (std::vector<Size>& tiles : of_owners_) {
    tiles.clear();
  }
  for (Size tile = 0; tile < tiles_.count(); ++tile) {
    if (owners_[at(tile)] != kNobody) {
      of_owners_[at(owners_[at(tile)])].push_back(tile);
    }
  }
  leaving_tiles_.clear();
  arriving_tiles_.clear();
  for (int process = 0; process < processes.size(); ++process) {
    if (process != self) {
      std::ranges::copy_if(of_owners_[at(self)], std::back_inserter(leaving_tiles_.tiles),
                           [&](Size tile) { return needs(process, tile); });
      std::ranges::copy_if(of_owners_[at(process)], std::back_inserter(arriving_tiles_.tiles),
                           [&](Size tile) { return needs(self, tile); });
    }
    leaving_tiles_.tile_ends.push_back(static_cast<Size>(leaving_tiles_.tiles.size()));
    arriving_tiles_.tile_ends.push_back(static_cast<Size>(arriving_tiles_.tiles.size()));
  }
}

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::exchange_tiles(Grid<Real>& grid, Communicator& processes,
                                               ThreadTeam& team) {
  list_tiles(processes);
  const Size words = words_of_tile();
  Shipment& leaving = leaving_tiles_;
  Shipment& arriving = arriving_tiles_;
  leaving.charged.assign(leaving.tiles.size() * at(words), 0);
  team.for_chunks(static_cast<Size>(leaving.tiles.size()), [&](Size place, int) {
    std::uint64_t* charged = leaving.charged.data() + place * words;
    for_segments(grid, leaving.tiles[at(place)], [&](Size index, const Real* nodes, Size count) {
      const bool any = std::any_of(nodes, nodes + count, [](Real charge) { return charge != 0; });
      charged[index / kBitsOfWord] |= std::uint64_t{any} << index % kBitsOfWord;
    });
  });
  arriving.charged.resize(arriving.tiles.size() * at(words));
  const auto exchange = [&](const auto& sent, auto& received, auto&& end_of) {
    std::vector<Size> sent_ends;
    std::vector<Size> received_ends;
    for (int process = 0; process < processes.size(); ++process) {
      sent_ends.push_back(end_of(leaving, process));
      received_ends.push_back(end_of(arriving, process));
    }
    exchange_items(processes, sent.data(), sent_ends, received.data(), received_ends);
  };
  exchange(leaving.charged, arriving.charged, [words](const Shipment& shipment, int process) {
    return shipment.tile_ends[at(process)] * words;
  });

  leaving.make_room(words);
  arriving.make_room(words);
  for_charged(grid, leaving, team, [](const Real* nodes, Real* charges, Size count) {
    std::copy_n(nodes, count, charges);
  });
  exchange(leaving.charges, arriving.charges, [](const Shipment& shipment, int process) {
    return shipment.starts[at(shipment.tile_ends[at(process)])];
  });
  for_charged(grid, arriving, team, [](Real* nodes, const Real* charges, Size count) {
    std::copy_n(charges, count, nodes);
  });
}

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::Shipment::clear() {
  tiles.clear();
  tile_ends.clear();
}

template <typename Real, int Dims>
void SharedCharges<Real, Dims>::Shipment::make_room(Size words) {
  starts.resize(tiles.size() + 1);
  starts[0] = 0;
  for (std::size_t place = 0; place < tiles.size(); ++place) {
    Size segments = 0;
    for (std::size_t word = place * at(words); word < (place + 1) * at(words); ++word) {
      segments += std::popcount(charged[word]);
    }
    // One that the grid's border cuts has room for a whole one.
    starts[place + 1] = starts[place] + segments * kSegmentNodes;
  }
  charges.resize(at(starts.back()));
}

template class SharedCharges<float, 1>;
template class SharedCharges<float, 2>;
template class SharedCharges<double, 1>;
template class SharedCharges<double, 2>;

} // namespace acctsne
