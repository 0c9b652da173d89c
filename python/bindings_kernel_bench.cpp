// SPDX-License-Identifier: Apache-2.0
// kernel_bench as Python sees it: options are keywords, facts come as JSON text to a function.
#include "python/bindings_kernel_bench.h"
#include "python/gil.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "tools/kernel_bench/kernel_bench.h"

namespace py = pybind11;
using pumice::engine::kernel_bench::Options;

namespace {

// Takes keywords out of `given`; what is left is unknown.
Options options_of(py::dict given) {
  Options options;
  const auto pop = [&](const char* name, auto& field) {
    if (!given.contains(name)) return;
    field = py::cast<std::remove_reference_t<decltype(field)>>(given[name]);
    given.attr("pop")(name);
  };
  pop("device", options.device);
  pop("features", options.features);
  pop("profile", options.profile);
  pop("compile", options.compile);
  pop("cache_dir", options.cache_dir);
  pop("ops", options.ops);
  pop("kernels", options.kernels);
  pop("cases", options.cases);
  pop("dtype", options.dtype);
  pop("storage", options.storage);
  pop("full", options.full);
  pop("seed", options.seed);
  pop("replays", options.replays);
  pop("plant", options.mistake);
  pop("seconds", options.seconds);
  pop("rotate_bytes", options.rotate_bytes);
  pop("barrier", options.barrier);
  pop("ceilings", options.ceilings);
  pop("regret", options.regret);
  pop("grid", options.grid);
  pop("model", options.model);
  pop("sizes", options.sizes);
  pop("budget", options.budget);
  if (!given.empty()) throw py::type_error("unknown options: " + py::cast<std::string>(py::str(given)));
  return options;
}

// Waits without the GIL; comes back for every fact, where Ctrl-C is seen.
template <class Command>
auto run(const Command& command, const py::function& report, const py::kwargs& given) {
  const Options options = options_of(py::dict(given));
  const GilReleased waiting;
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
      const py::object python_error = py::module_::import("pumice.errors")
                                          .attr("from_native")(error.code, error.name, "api", error.path, error.what());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(python_error.ptr())), python_error.ptr());
    }
  });
  m.def("device_profile",
        [](const py::kwargs& given) { return pumice::engine::kernel_bench::profile(options_of(py::dict(given))); });
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
  m.def("kernel_tune", [](const py::function& report, const py::kwargs& given) {
    run(pumice::engine::kernel_bench::tune, report, given);
  });
}
