// SPDX-License-Identifier: Apache-2.0
// kernel_bench as Python sees it: options are keywords, facts come as JSON text to a function.
#include "python/bindings_kernel_bench.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "tools/kernel_bench/kernel_bench.h"

namespace py = pybind11;
using pumice::engine::kernel_bench::Options;

namespace {

// Takes keywords out of `given`; what is left is unknown.
Options options_of(py::dict given) {
  Options options;
  const auto take = [&](const char* name, auto& field) {
    if (!given.contains(name)) return;
    field = py::cast<std::remove_reference_t<decltype(field)>>(given[name]);
    given.attr("pop")(name);
  };
  take("device", options.device);
  take("features", options.features);
  take("cache_dir", options.cache_dir);
  take("ops", options.ops);
  take("kernels", options.kernels);
  take("cases", options.cases);
  take("dtype", options.dtype);
  take("storage", options.storage);
  take("full", options.full);
  take("seed", options.seed);
  take("replays", options.replays);
  take("plant", options.mistake);
  take("seconds", options.seconds);
  take("rotate_bytes", options.rotate_bytes);
  take("barrier", options.barrier);
  take("ceilings", options.ceilings);
  take("regret", options.regret);
  if (!given.empty()) throw py::type_error("unknown options: " + py::cast<std::string>(py::str(given)));
  return options;
}

// Waits without the GIL; comes back for every fact, where Ctrl-C is seen.
template <class Command>
uint32_t run(const Command& command, const py::function& report, const py::kwargs& given) {
  const Options options = options_of(py::dict(given));
  const py::gil_scoped_release waiting;
  return command(options, [&](const std::string& fact) {
    const py::gil_scoped_acquire working;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    report(fact);
  });
}

}  // namespace

void add_kernel_bench(py::module_& m) {
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const pumice::engine::kernel_bench::Failure& error) {
      const py::object made = py::module_::import("pumice.errors")
                                  .attr("from_native")(error.code, error.name, "api", error.path, error.what());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
    }
  });
  m.def("kernel_list",
        [](const py::kwargs& given) { return pumice::engine::kernel_bench::list(options_of(py::dict(given))); });
  m.def("kernel_cases",
        [](const py::kwargs& given) { return pumice::engine::kernel_bench::cases(options_of(py::dict(given))); });
  m.def("kernel_test", [](const py::function& report, const py::kwargs& given) {
    return run(pumice::engine::kernel_bench::test, report, given);
  });
  m.def("kernel_bench", [](const py::function& report, const py::kwargs& given) {
    return run(pumice::engine::kernel_bench::bench, report, given);
  });
}
