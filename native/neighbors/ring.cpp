// The exact search by several processes: the points of each pass by the queries of all.
//
// The search of one process (neighbors/exact.cpp) goes on from points to points: a query's list and
// its limit are kept, and with them what the filter can leave out. Lists are the same in the end as
// if all points had been there at once, for what they keep does not depend on the order.
//
// Where they have to be finished in double, the rows of the points that they hold are needed again,
// and where that proves nothing, those of all (neighbors/proof.hpp). The points pass by once more
// for either, if any process has such a query.
#include "neighbors/ring.hpp"

#include "kernels/dispatch.hpp"
#include "neighbors/cell_search.hpp"
#include "neighbors/found_rows.hpp"
#include "neighbors/passing_points.hpp"

#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>

namespace acctsne {
namespace {

template <typename Data>
class RingSearch {
public:
  explicit RingSearch(const NeighborsRequest<Data>& request)
      : request_(request), own_(request.points), processes_(*request.processes),
        rows_(sum(processes_, own_.rows)), first_(rows_of(processes_, rows_).begin),
        kept_(request.wants_more_than_data() ? kept_for_proof(request.neighbors)
                                             : request.neighbors),
        passing_(own_, rows_, processes_), kernel_(kernels().distances.of<Data>()) {}

  void run(ThreadTeam& team) {
    std::vector<OpenQuery> open;
    if (kept_ < rows_ - 1) {
      open = search(team);
      if (sum(processes_, static_cast<Size>(open.size())) > 0) {
        refine(open, team);
      }
    } else {
      for (Size row = 0; row < own_.rows; ++row) {
        open.push_back({static_cast<PointId>(row), {}, {}});
      }
    }
    if (sum(processes_, static_cast<Size>(open.size())) > 0) {
      search_in_double(open, team);
    }
  }

private:
  // A query whose neighbours are not known yet.
  struct OpenQuery {
    PointId row; // of own ones
    std::optional<ListEnds> ends;
    std::vector<Candidate<double>> candidates;
  };

  // Returns the queries whose lists have to be finished in double, their candidates without
  // distances.
  std::vector<OpenQuery> search(ThreadTeam& team) {
    const Cells cells(own_.projection, own_.rows, own_.features, team);
    SearchedPoints<Data> queries(own_, cells, /*as_bytes=*/true, first_, team);
    // As bytes only if the numbers of all processes are, for that may show in the last bits.
    const bool as_bytes = sum(processes_, queries.rows.bytes ? 0 : 1) == 0;
    if (!as_bytes) {
      queries.rows.bytes.reset();
    }
    QueryLists<Data> lists(cells, kept_);
    passing_.for_each([&](const PointSet<Data>& points, Rows rows) {
      const auto find = [&](const SearchedPoints<Data>& there, bool go_on) {
        CellSearch<Data> search(there, queries, lists, go_on, team);
        search.run(team, {request_.done, points.rows}, [](Size, int) {});
      };
      if (own_.rows == 0) {
        if (request_.done != nullptr) {
          request_.done->fetch_add(points.rows, std::memory_order_relaxed);
        }
      } else if (rows.begin == first_) {
        find(queries, false);
      } else {
        const Cells there(points.projection, points.rows, points.features, team);
        find({points, there, as_bytes, rows.begin, team}, true);
      }
    });

    std::vector<OpenQuery> open;
    std::mutex mutex;
    team.for_chunks(cells.count(), [&](Size cell, int) {
      for (Size place = cells.begin(cell); place < cells.end(cell); ++place) {
        const std::vector<Candidate<Data>>& found = lists.of(place).sorted();
        if (static_cast<Size>(found.size()) < kept_) {
          throw std::domain_error("a distance is not finite");
        }
        const ListEnds ends(found, request_.neighbors);
        if (!ends.may_have_vanished() && !request_.wants_more_than_data()) {
          write_nearest(request_, cells.row(place), found);
        } else {
          OpenQuery query{cells.row(place), ends, {}};
          for (const Candidate<Data>& candidate : found) {
            query.candidates.push_back({0.0, candidate.id});
          }
          const std::lock_guard lock(mutex);
          open.push_back(std::move(query));
        }
        lists.of(place) = {};
      }
    });
    return open;
  }

  // Computes the distances of all candidates in double, and leaves those queries of which that does
  // not prove the answer.
  void refine(std::vector<OpenQuery>& open, ThreadTeam& team) {
    passing_.for_each([&](const PointSet<Data>& points, Rows rows) {
      for_queries(open, team, [&](OpenQuery& query) {
        std::vector<Data> from;
        std::vector<Data> to;
        const Data* row = own_.row(query.row, from);
        for (Candidate<double>& candidate : query.candidates) {
          if (rows.has(candidate.id)) {
            candidate.distance =
                distance(row, points.row(static_cast<PointId>(candidate.id - rows.begin), to));
          }
        }
      });
    });
    for_queries(open, team, [&](OpenQuery& query) {
      const double kth = sort_nearest(query.candidates, request_.neighbors);
      if (query.ends->prove(kth, rounding_of_distances(own_.features))) {
        write_nearest(request_, query.row, query.candidates);
      } else {
        query.ends.reset();
      }
    });
    std::erase_if(open, [](const OpenQuery& query) { return query.ends.has_value(); });
  }

  // Compares queries with all points.
  void search_in_double(std::vector<OpenQuery>& open, ThreadTeam& team) {
    for (OpenQuery& query : open) {
      query.candidates.clear();
    }
    passing_.for_each([&](const PointSet<Data>& points, Rows rows) {
      for_queries(open, team, [&](OpenQuery& query) {
        std::vector<Data> from;
        std::vector<Data> to;
        const Data* row = own_.row(query.row, from);
        for (Size id = rows.begin; id < rows.end; ++id) {
          if (id != first_ + query.row) {
            const Data* other = points.row(static_cast<PointId>(id - rows.begin), to);
            query.candidates.push_back({distance(row, other), static_cast<PointId>(id)});
          }
        }
        if (static_cast<Size>(query.candidates.size()) > request_.neighbors) {
          sort_nearest(query.candidates, request_.neighbors);
          query.candidates.resize(at(request_.neighbors));
        }
      });
    });
    for_queries(open, team, [&](OpenQuery& query) {
      sort_nearest(query.candidates, request_.neighbors);
      write_nearest(request_, query.row, query.candidates);
    });
  }

  template <typename Body>
  static void for_queries(std::vector<OpenQuery>& open, ThreadTeam& team, const Body& body) {
    constexpr Size kQueries = 16;
    team.for_chunks(
        chunk_count(static_cast<Size>(open.size()), kQueries), [&](Size chunk, int worker) {
          const Size end = std::min((chunk + 1) * kQueries, static_cast<Size>(open.size()));
          for (Size q = chunk * kQueries; q < end && !team.should_stop(worker); ++q) {
            body(open[at(q)]);
          }
        });
  }

  double distance(const Data* from, const Data* to) const {
    return kernel_.squared_distance(from, to, own_.features, own_.projection.scale);
  }

  const NeighborsRequest<Data>& request_;
  const PointSet<Data>& own_;
  Communicator& processes_;
  Size rows_; // of all processes
  Size first_;
  Size kept_;
  PassingPoints<Data> passing_;
  const DistanceKernels<Data>& kernel_;
};

} // namespace

template <typename Data>
void ring_neighbors(const NeighborsRequest<Data>& request, ThreadTeam& team) {
  RingSearch<Data>(request).run(team);
}

template void ring_neighbors(const NeighborsRequest<float>&, ThreadTeam&);
template void ring_neighbors(const NeighborsRequest<double>&, ThreadTeam&);

} // namespace acctsne
