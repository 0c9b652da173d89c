// SPDX-License-Identifier: Apache-2.0
#include "runtime/tool/npy.h"

#include <cstring>
#include <fstream>
#include <regex>
#include <stdexcept>

namespace tool {
namespace {

struct Kind {
  pumice_dtype dtype;
  const char* descr;
  const char* name;
  uint64_t bytes;
};
constexpr Kind kKinds[] = {{PUMICE_F32, "<f4", "float32", 4}, {PUMICE_F16, "<f2", "float16", 2},
                           {PUMICE_I32, "<i4", "int32", 4},   {PUMICE_I64, "<i8", "int64", 8},
                           {PUMICE_BOOL, "|b1", "bool", 1},   {PUMICE_U8, "|u1", "uint8", 1},
                           {PUMICE_I8, "|i1", "int8", 1}};

const Kind& kind(pumice_dtype dtype) {
  for (const Kind& k : kKinds)
    if (k.dtype == dtype) return k;
  throw std::runtime_error("unknown dtype");
}

[[noreturn]] void bad(const std::string& path, const std::string& why) {
  throw std::runtime_error(path + ": " + why);
}

std::string read_header(std::ifstream& file, const std::string& path) {
  unsigned char start[12] = {};
  file.read(reinterpret_cast<char*>(start), 10);
  if (!file || std::memcmp(start, "\x93NUMPY", 6) != 0) bad(path, "not a .npy file");
  uint32_t length = start[8] | static_cast<uint32_t>(start[9]) << 8;
  if (start[6] >= 2) {
    file.read(reinterpret_cast<char*>(start + 10), 2);
    length |= static_cast<uint32_t>(start[10]) << 16 | static_cast<uint32_t>(start[11]) << 24;
  }
  if (length > (1u << 20)) bad(path, "the header is longer than 1 MiB");
  std::string header(length, '\0');
  file.read(header.data(), length);
  if (!file) bad(path, "the file ends inside its header");
  return header;
}

}  // namespace

const char* dtype_name(pumice_dtype dtype) {
  return kind(dtype).name;
}
uint64_t dtype_bytes(pumice_dtype dtype) {
  return kind(dtype).bytes;
}

Array read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) bad(path, "cannot be opened");
  const std::string header = read_header(file, path);
  std::smatch found;
  if (!std::regex_search(header, found, std::regex("'descr': *'([^']*)'"))) bad(path, "no dtype in the header");
  const std::string descr = found[1];
  Array array;
  bool known = false;
  for (const Kind& k : kKinds)
    if (descr == k.descr) array.dtype = k.dtype, known = true;
  if (!known) bad(path, "dtype '" + descr + "' is not one of <f4 <f2 <i4 <i8 |b1 |u1 |i1");
  if (header.find("'fortran_order': True") != std::string::npos)
    bad(path, "Fortran order; save numpy.ascontiguousarray(x)");
  if (!std::regex_search(header, found, std::regex("'shape': *\\(([^)]*)\\)"))) bad(path, "no shape in the header");
  uint64_t bytes = dtype_bytes(array.dtype);
  const std::string shape = found[1];
  static const std::regex number("[0-9]+");
  for (std::sregex_iterator it(shape.begin(), shape.end(), number), end; it != end; ++it) {
    if (it->str().size() > 18) bad(path, "a dimension of " + it->str());
    array.dims.push_back(std::stoll(it->str()));
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(array.dims.back()), &bytes))
      bad(path, "the shape overflows");
  }
  const auto start = file.tellg();
  file.seekg(0, std::ios::end);
  if (static_cast<uint64_t>(file.tellg() - start) < bytes) bad(path, "the file ends before its data does");
  file.seekg(start);
  array.data.resize(bytes);
  file.read(reinterpret_cast<char*>(array.data.data()), static_cast<std::streamsize>(bytes));
  if (!file) bad(path, "cannot be read");
  return array;
}

void write_npy(const std::string& path, const Array& array) {
  std::string shape;
  for (const int64_t dim : array.dims) shape += std::to_string(dim) + ",";
  std::string header =
      std::string("{'descr': '") + kind(array.dtype).descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const unsigned char start[10] = {0x93,
                                   'N',
                                   'U',
                                   'M',
                                   'P',
                                   'Y',
                                   1,
                                   0,
                                   static_cast<unsigned char>(header.size() & 0xff),
                                   static_cast<unsigned char>(header.size() >> 8)};
  file.write(reinterpret_cast<const char*>(start), sizeof(start));
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(reinterpret_cast<const char*>(array.data.data()), static_cast<std::streamsize>(array.data.size()));
  file.close();
  if (!file) bad(path, "cannot be written");
}

}  // namespace tool
