// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/file.h"

#include "test/graph/make.h"

std::vector<std::byte> adds_file() {
  return pumice::engine::test::adds().file();
}
