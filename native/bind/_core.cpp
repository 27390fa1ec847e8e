// The Python module acctsne._core.
#include "acctsne/communicator.hpp"
#include "bind/native_call.hpp"
#include "kernels/dispatch.hpp"

namespace acctsne {
namespace {

Dict<nb::any> build_info() {
  Dict<nb::any> info;
#if defined(__clang__)
  info["compiler"] = "clang " __clang_version__;
#elif defined(__GNUC__)
  info["compiler"] = "gcc " __VERSION__;
#else
  info["compiler"] = "unknown";
#endif
  info["simd_levels_built"] = nb::cast(built_levels());
  info["simd_levels_usable"] = nb::cast(usable_levels());
  info["simd_level"] = std::string(kernels().level);
  return info;
}

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "The native core (native/bind).";
  // A thread that the interpreter's end finds in Python code gives nothing back: no fault of ours.
  nb::set_leak_warnings(false);
  kernels(); // choose the SIMD level at import, so that a wrong ACCTSNE_SIMD is told at once
  bind_options(m);
  bind_data_rows(m);
  bind_frame(m);
  bind_neighbors(m);
  bind_steps(m);
  bind_optimizers(m);
  bind_maps(m);
  bind_quality(m);
  bind_recording(m);
  m.def("build_info", &build_info);
  m.attr("BLOCK_ROWS") = kBlockRows;
  m.def(
      "rows_of",
      [](int rank, int processes, Size rows) {
        require(processes >= 1 && rank >= 0 && rank < processes && rows >= 0, "no such process");
        const Rows own = rows_of(rank, processes, rows);
        return std::tuple(own.begin, own.end);
      },
      "rank"_a, "processes"_a, "rows"_a);
  m.def(
      "use_simd_level",
      [](const std::string& name) {
        const LevelChange alone;
        use_level(name);
      },
      "name"_a);
}

} // namespace acctsne
