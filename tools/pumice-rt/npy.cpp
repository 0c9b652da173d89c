// SPDX-License-Identifier: Apache-2.0
#include "tools/pumice-rt/npy.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
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

// The text between `open` and `close` after `'key':` in the header, a Python dict that numpy has written.
std::string field(const std::string& header, const std::string& key, char open, char close, const std::string& path) {
  const size_t at = header.find("'" + key + "'");
  const size_t begin = at == std::string::npos ? at : header.find(open, header.find(':', at));
  const size_t end = begin == std::string::npos ? begin : header.find(close, begin + 1);
  if (end == std::string::npos) bad(path, "no '" + key + "' in the header");
  return header.substr(begin + 1, end - begin - 1);
}

// Sizes from text: {3, 4} from "3, 4".
std::vector<int64_t> sizes(const std::string& text, const std::string& path) {
  std::vector<int64_t> result;
  for (size_t at = text.find_first_of("0123456789"); at != std::string::npos;
       at = text.find_first_of("0123456789", at)) {
    const size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    if (end - at > 18) bad(path, "a dimension of " + text.substr(at, end - at));
    result.push_back(std::stoll(text.substr(at, end - at)));
    at = end;
  }
  return result;
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
  const std::string descr = field(header, "descr", '\'', '\'', path);
  Array array;
  bool known = false;
  for (const Kind& k : kKinds)
    if (descr == k.descr) array.dtype = k.dtype, known = true;
  if (!known) bad(path, "dtype '" + descr + "' is not one of <f4 <f2 <i4 <i8 |b1 |u1 |i1");
  if (header.find("'fortran_order': True") != std::string::npos)
    bad(path, "Fortran order; save numpy.ascontiguousarray(x)");
  array.dims = sizes(field(header, "shape", '(', ')', path), path);
  uint64_t bytes = dtype_bytes(array.dtype);
  for (const int64_t dim : array.dims)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes)) bad(path, "the shape overflows");
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
  const std::string part = path + ".part";  // the file is there as a whole or not at all
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
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
  std::error_code error;
  if (file) std::filesystem::rename(part, path, error);
  if (!file || error) {
    std::filesystem::remove(part, error);
    bad(path, "cannot be written");
  }
}

}  // namespace tool
