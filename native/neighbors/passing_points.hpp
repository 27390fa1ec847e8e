// Points of the other processes, which pass by those of one process after the other.
#pragma once

#include "acctsne/communicator.hpp"
#include "neighbors/points.hpp"

#include <cstddef>
#include <memory>

namespace acctsne {

// Every process sends its own points to each of the others in turn, so that it holds its own and
// those of one other at a time.
template <typename Data>
class PassingPoints {
public:
  // `own` are the points of the rows that this process owns, of so many.
  PassingPoints(const PointSet<Data>& own, Size rows, Communicator& processes);

  // Calls body(points, rows) with own points and then with those of each other process that has
  // any; `rows` are their numbers. Every process must call it.
  template <typename Body>
  void for_each(Body&& body) {
    visit(own_, rows_of(processes_, rows_), body);
    for (int step = 1; step < processes_.size(); ++step) {
      const Rows theirs = receive(step);
      visit(there_, theirs, body);
    }
  }

private:
  template <typename Body>
  static void visit(const PointSet<Data>& points, Rows rows, Body& body) {
    if (points.rows > 0) {
      body(points, rows);
    }
  }

  // Takes the points of the process that is so many ranks ahead, and gives own ones to the one as
  // far behind.
  Rows receive(int step);
  void pass(int step, const std::byte* leaving, Size leaving_bytes, std::byte* arriving,
            Size arriving_bytes);
  Rows rows_of_rank(int rank) const { return rows_of(rank, processes_.size(), rows_); }

  const PointSet<Data>& own_;
  Size rows_;
  Communicator& processes_;
  PointSet<Data> there_; // those that are passing by
  std::unique_ptr<std::byte[]> data_;
  std::unique_ptr<float[]> coordinates_;
  std::unique_ptr<double[]> squared_norms_;
};

} // namespace acctsne
