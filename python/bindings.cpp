// SPDX-License-Identifier: Apache-2.0
// pumice._pumice: the runtime as Python sees it, over the public C++ header. Arrays come in contiguous, native-endian
// and of a supported dtype (session.py sees to that); waiting is done without the GIL.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/interrupt.h"
#include "ops/op.h"
#include "ops/shared/accepted.h"
#include "pumice/pumice.hpp"
#include "python/bindings_kernel_bench.h"
#include "python/gil.h"
#include "vulkan/instance.h"

namespace py = pybind11;
using pumice::Model;
using pumice::Session;

namespace {

struct Kind {
  pumice_dtype dtype;
  char kind;  // numpy's dtype.kind
  size_t bytes;
  const char* name;
};
constexpr Kind kKinds[] = {{PUMICE_F32, 'f', 4, "float32"}, {PUMICE_F16, 'f', 2, "float16"},
                           {PUMICE_I32, 'i', 4, "int32"},   {PUMICE_I64, 'i', 8, "int64"},
                           {PUMICE_BOOL, 'b', 1, "bool"},   {PUMICE_U8, 'u', 1, "uint8"},
                           {PUMICE_I8, 'i', 1, "int8"}};

const Kind& kind_of(pumice_dtype dtype) {
  for (const Kind& kind : kKinds)
    if (kind.dtype == dtype) return kind;
  throw std::runtime_error("the runtime answered an unknown dtype");
}

pumice_tensor tensor_of(const py::array& array) {
  const py::dtype dtype = array.dtype();
  for (const Kind& kind : kKinds) {
    if (dtype.kind() != kind.kind || static_cast<size_t>(dtype.itemsize()) != kind.bytes) continue;
    const std::vector<int64_t> dims(array.shape(), array.shape() + array.ndim());
    return pumice::view(kind.dtype, dims, array.data(), static_cast<uint64_t>(array.nbytes()));
  }
  throw py::type_error("array dtype is not one of the runtime's");
}

std::vector<pumice_tensor> tensors_of(const std::vector<py::array>& arrays) {
  std::vector<pumice_tensor> tensors;
  tensors.reserve(arrays.size());
  for (const py::array& array : arrays) tensors.push_back(tensor_of(array));
  return tensors;
}

std::span<const std::byte> bytes_of(const py::bytes& data) {
  const std::string_view view = data;
  return {reinterpret_cast<const std::byte*>(view.data()), view.size()};
}

// External constants are handed over as buffers that live until the load is done.
struct External {
  std::unordered_map<std::string, std::string_view> data;
  static int find(void* user, const char* key, const void** data, uint64_t* bytes) {
    const auto& known = static_cast<External*>(user)->data;
    const auto found = known.find(key);
    if (found == known.end()) return 1;
    *data = found->second.data();
    *bytes = found->second.size();
    return 0;
  }
};

// An output in memory that becomes an array's. Made while a call holds the session, so without the GIL: a thread that
// has the session and waits for the GIL would stop all others.
struct Result {
  struct Free {
    void operator()(std::byte* data) const { ::operator delete[](data, kAlignment); }
  };
  static constexpr std::align_val_t kAlignment{64};

  explicit Result(const pumice_tensor& tensor)
      : dtype(tensor.dtype),
        dims(tensor.dims, tensor.dims + tensor.rank),
        data(static_cast<std::byte*>(::operator new[](std::max<uint64_t>(tensor.bytes, 1), kAlignment))) {}

  py::array array() {
    const py::dtype type(kind_of(dtype).name);
    const py::capsule owner(data.get(), [](void* memory) { Free()(static_cast<std::byte*>(memory)); });
    return py::array(type, dims, data.release(), owner);
  }

  pumice_dtype dtype;
  std::vector<py::ssize_t> dims;
  std::unique_ptr<std::byte[], Free> data;
};

// Lets go of the GIL for a call that may wait for long, and lets Python see to its signals meanwhile. What a handler
// raises (Ctrl-C: KeyboardInterrupt) ends the wait, and is raised in place of the error of the call.
template <class Call>
void call_and_see_signals(const Call& call) {
  std::exception_ptr raised;
  try {
    GilReleased waiting;
    const pumice::engine::Interrupt interrupt([&] {
      if (python_is_ending())  // the lock would never come: this call must end first
        pumice::engine::fail(pumice::engine::Code::WrongState, pumice::engine::Stage::execute, "",
                             "the interpreter is ending");
      waiting.locked([&] {
        if (PyErr_CheckSignals() != 0) raised = std::make_exception_ptr(py::error_already_set());
      });
      if (!raised) return;
      pumice::engine::fail(pumice::engine::Code::Cancelled, pumice::engine::Stage::execute, "", "interrupted");
    });
    call();
  } catch (const pumice::Error&) {
    if (!raised) throw;
  }
  if (raised) std::rethrow_exception(raised);
}

// Every method that uses the session lets go of the GIL first: it may wait for another thread's call.
class NativeSession {
 public:
  NativeSession(const py::object& source, const std::string& device, const std::string& features,
                const std::string& cache_dir, const py::dict& external, uint64_t max_memory, double max_seconds)
      : model_(load(source,
                    {.device = device,
                     .features = features,
                     .cache_dir = cache_dir,
                     .max_memory = max_memory,
                     .max_seconds = max_seconds},
                    external)),
        session_(model_) {}

  std::string describe() const { return model_.describe(); }

  void test() {
    call_and_see_signals([&] { model_.test(); });
  }

  py::list run(const std::vector<py::array>& arrays, uint32_t method, uint32_t steps) {
    const std::vector<pumice_tensor> inputs = tensors_of(arrays);
    std::vector<Result> results;
    call_and_see_signals([&] {
      session_.call_into(
          inputs, method,
          [&](uint32_t, const pumice_tensor& tensor) -> void* {
            results.emplace_back(tensor);
            return results.back().data.get();
          },
          steps);
    });
    py::list arrays_out;
    for (Result& result : results) arrays_out.append(result.array());
    return arrays_out;
  }

  void prepare(const std::vector<py::array>& arrays, uint32_t method) {
    const std::vector<pumice_tensor> inputs = tensors_of(arrays);
    call_and_see_signals([&] { session_.prepare(inputs, method); });
  }

  std::string profile(const std::vector<py::array>& arrays, uint32_t method) {
    const std::vector<pumice_tensor> inputs = tensors_of(arrays);
    std::string rows;
    call_and_see_signals([&] { rows = session_.profile(inputs, method); });
    return rows;
  }

  void reset() {
    call_and_see_signals([&] { session_.reset(); });
  }

  void seed(uint64_t seed) {
    call_and_see_signals([&] { session_.seed(seed); });
  }

  std::string memory() const {
    std::string bytes;
    call_and_see_signals([&] { bytes = session_.memory(); });
    return bytes;
  }

  void cancel() { session_.cancel(); }

  // Calls under way end first; later ones get WrongState, since handles are never used again.
  void close() {
    GilReleased waiting;
    pumice_session_free(session_.handle());
    pumice_model_free(model_.handle());
  }

 private:
  static Model load(const py::object& source, const pumice::Options& options, const py::dict& external) {
    External data;
    for (const auto& [key, value] : external)
      data.data.emplace(py::cast<std::string>(key),
                        py::cast<std::string_view>(py::reinterpret_borrow<py::bytes>(value)));
    pumice_options c = options.c();
    c.external = External::find;
    c.user = &data;
    if (py::isinstance<py::bytes>(source)) {
      const auto file = bytes_of(py::reinterpret_borrow<py::bytes>(source));
      GilReleased loading;
      return Model::load(file, c);
    }
    const std::string path = py::cast<std::string>(source);
    GilReleased loading;
    return Model::load_file(path, c);
  }

  Model model_;
  Session session_;
};

using OpRow = std::tuple<std::string, int, std::string, pumice::engine::Accepted>;

// For the exporter, which accepts only what the engine has.
std::vector<OpRow> op_table() {
  std::vector<OpRow> rows;
  for (const pumice::engine::Op& op : pumice::engine::op_table())
    rows.emplace_back(op.signature.name, op.signature.version, op.signature.params, pumice::engine::accepted(op));
  return rows;
}

}  // namespace

PYBIND11_MODULE(_pumice, m) {
  m.doc() = "Pumice's runtime; use the package `pumice`.";
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const pumice::Error& error) {
      const py::object python_error =
          py::module_::import("pumice.errors")
              .attr("from_native")(error.code, error.name, error.stage, error.path, error.text);
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(python_error.ptr())), python_error.ptr());
    }
  });
  m.def("version", [] { return std::string(pumice_version()); });
  m.def("devices", [] {
    GilReleased waiting;
    return pumice::devices();
  });
  m.def("check", [](const py::bytes& file) { pumice::check_bytes(bytes_of(file)); });
  m.def("check_file", [](const std::string& path) { pumice::check_file(path); });
  m.def("inspect", [](const py::bytes& file) { return pumice::inspect(bytes_of(file)); });
  m.def("inspect_file", [](const std::string& path) { return pumice::inspect_file(path); });
  m.def("op_table", &op_table, "(name, version, parameters, what it takes) of every operator: ops/shared/accepted.h");
  m.def("validation_messages", &pumice::engine::validation_messages,
        "of Vulkan's validation layer, which PUMICE_VALIDATE=1 starts");
  add_kernel_bench(m);
  py::class_<NativeSession>(m, "NativeSession")
      .def(py::init<const py::object&, const std::string&, const std::string&, const std::string&, const py::dict&,
                    uint64_t, double>())
      .def("describe", &NativeSession::describe)
      .def("test", &NativeSession::test)
      .def("run", &NativeSession::run)
      .def("prepare", &NativeSession::prepare)
      .def("profile", &NativeSession::profile)
      .def("reset", &NativeSession::reset)
      .def("seed", &NativeSession::seed)
      .def("cancel", &NativeSession::cancel)
      .def("memory", &NativeSession::memory)
      .def("close", &NativeSession::close);
}
