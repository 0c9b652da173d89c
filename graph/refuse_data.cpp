// SPDX-License-Identifier: Apache-2.0
#include "graph/refuse_data.h"

#include "base/error.h"
#include "glsl/include/core/modes.glslh"

namespace pumice::engine {

void refuse_data(const Graph::Impl& graph, const uint32_t (&status)[4]) {
  const uint32_t call = status[0] - 1, position = status[1];
  const int32_t value = static_cast<int32_t>(status[2]), limit = static_cast<int32_t>(status[3]);
  if (call >= graph.method().ops.size())
    fail(Code::Internal, Stage::execute, "", "a kernel reports trouble in operator call %u", call);
  const std::string op = graph.op_name(graph.method().ops[call].op);
  if (limit == STATUS_LEAVES_32_BITS)
    fail(Code::InvalidArgument, Stage::execute, graph.path(call),
         "%s: the int64 at position %u of the result needs more than the 32 bits that int64 has on the device",
         op.c_str(), position);
  if (limit == STATUS_DIVIDES_BY_ZERO)
    fail(Code::InvalidArgument, Stage::execute, graph.path(call), "%s: an integer is divided by 0 at position %u",
         op.c_str(), position);
  if (limit == STATUS_NO_NUMBER)
    fail(Code::InvalidArgument, Stage::execute, graph.path(call),
         "%s: no logit of row %u is a number: the model overflows", op.c_str(), position);
  if (limit == STATUS_BAD_OPTION)
    fail(Code::InvalidArgument, Stage::execute, graph.path(call), "%s: option %u is out of its range", op.c_str(),
         position);
  fail(Code::InvalidArgument, Stage::execute, graph.path(call), "%s: index %d at position %u is outside 0..%d",
       op.c_str(), value, position, limit - 1);
}

}  // namespace pumice::engine
