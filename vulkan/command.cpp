// SPDX-License-Identifier: Apache-2.0
#include "vulkan/command.h"

#include "base/error.h"
#include "vulkan/descriptor.h"
#include "vulkan/queue.h"

namespace pumice::engine {
namespace {

constexpr VkPipelineStageFlags kWork = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

}  // namespace

struct Commands::Impl {
  enum class State : uint8_t { empty, recording, recorded };

  explicit Impl(std::shared_ptr<Device> device);
  ~Impl();
  void reset();
  void must_record() const;
  VkCommandBuffer part() const { return recording.parts.back(); }
  void begin_part();

  std::shared_ptr<Device> device;
  Core& core;
  State state = State::empty;
  Recording recording;
  VkCommandBufferUsageFlags usage = 0;
  CommandPool pool;  // its buffers: of the parts, and of those of earlier recordings
  DescriptorSets sets;
  VkPipeline bound_pipeline = VK_NULL_HANDLE;
  VkQueryPool queries = VK_NULL_HANDLE;
  uint32_t num_queries = 0, max_queries = 0;
};

Commands::Impl::Impl(std::shared_ptr<Device> the_device)
    : device(std::move(the_device)), core(device->core()), pool(core.command_pools.take(core)), sets(core) {
  for (size_t i = 0; i < pool.fences.size(); ++i) recording.submits[i].fence = pool.fences[i];
}

Commands::Impl::~Impl() {
  bool usable = true;
  // A submit whose wait was skipped by an error is waited for here, for a bounded time.
  for (const Submit& submit : recording.submits) {
    if (submit.pending) core.hang(submit.fence);
    usable = usable && !submit.pending;
  }
  if (core.must_leak()) return;
  sets.destroy();
  core.vk.DestroyQueryPool(core.device, queries, nullptr);
  core.command_pools.give(core, std::move(pool), usable);
}

void Commands::Impl::must_record() const {
  if (state != State::recording) fail(Code::WrongState, Stage::encode, "commands", "recording has not begun");
}

void Commands::Impl::reset() {
  for (const Submit& submit : recording.submits)
    if (submit.pending) fail(Code::Busy, Stage::encode, "commands", "the command buffer still runs");
  state = State::empty;
  sets.reset();
  recording.parts.clear();
  num_queries = 0;
  VK(core.vk, Stage::encode, "commands", ResetCommandPool, core.device, pool.handle, 0);
}

void Commands::Impl::begin_part() {
  if (recording.parts.size() == pool.buffers.size()) {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool.handle;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    VkCommandBuffer buffer = nullptr;
    pool.buffers.reserve(pool.buffers.size() + 1);
    VK(core.vk, Stage::encode, "commands", AllocateCommandBuffers, core.device, &info, &buffer);
    pool.buffers.push_back(buffer);
  }
  recording.parts.push_back(pool.buffers[recording.parts.size()]);
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = usage;
  VK(core.vk, Stage::encode, "commands", BeginCommandBuffer, part(), &info);
  bound_pipeline = VK_NULL_HANDLE;
}

Commands::Commands(std::shared_ptr<Device> device) : impl_(std::make_unique<Impl>(std::move(device))) {}
Commands::Commands(Commands&&) noexcept = default;
Commands& Commands::operator=(Commands&&) noexcept = default;
Commands::~Commands() = default;

Recording& Commands::submission() const {
  return impl_->recording;
}

Recording& Commands::recorded() const {
  if (impl_->state != Impl::State::recorded)
    fail(Code::WrongState, Stage::execute, "commands", "the command buffer is not recorded to its end");
  return impl_->recording;
}

void Commands::begin(uint32_t num_timestamps, bool repeated) {
  Impl& self = *impl_;
  const Core& core = self.core;
  self.reset();
  if (num_timestamps > 0 && core.physical.timestamp_bits == 0) {
    fail(Code::DeviceUnsupported, Stage::encode, "timestamps", "%s has no timestamps; profile on another device",
         core.vk.device.c_str());
  }
  if (num_timestamps > self.max_queries) {
    core.vk.DestroyQueryPool(core.device, self.queries, nullptr);
    self.queries = VK_NULL_HANDLE;
    self.max_queries = 0;
    VkQueryPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = num_timestamps;
    VK(core.vk, Stage::encode, "timestamps", CreateQueryPool, core.device, &info, nullptr, &self.queries);
    self.max_queries = num_timestamps;
  }
  self.usage = repeated ? VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT : 0;
  self.begin_part();
  self.state = Impl::State::recording;
  self.num_queries = num_timestamps;
  if (num_timestamps > 0) core.vk.CmdResetQueryPool(self.part(), self.queries, 0, num_timestamps);
  barrier();  // what earlier submits wrote, uploads among them
}

// Barriers order what comes before and after them on the whole queue, so a new part needs none of its own.
void Commands::cut() {
  impl_->must_record();
  impl_->state = Impl::State::empty;
  VK(impl_->core.vk, Stage::encode, "commands", EndCommandBuffer, impl_->part());
  impl_->begin_part();
  impl_->state = Impl::State::recording;
}

void Commands::end() {
  impl_->must_record();
  impl_->state = Impl::State::empty;
  VK(impl_->core.vk, Stage::encode, "commands", EndCommandBuffer, impl_->part());
  impl_->state = Impl::State::recorded;
}

void Commands::dispatch(const Pipeline& pipeline, std::span<const Slice> bindings, std::span<const std::byte> push,
                        std::array<uint32_t, 3> groups, std::array<uint32_t, 3> first) {
  Impl& self = *impl_;
  const Core& core = self.core;
  const Shader& shader = *pipeline.shader;
  self.must_record();
  if (bindings.size() != shader.num_bindings || push.size() != shader.push_bytes) {
    fail(Code::Internal, Stage::encode, shader.name, "%s takes %u bindings and %u bytes of parameters; got %zu and %zu",
         shader.name, shader.num_bindings, shader.push_bytes, bindings.size(), push.size());
  }
  for (size_t i = 0; i < 3; ++i) {
    const uint32_t most = core.features.max_groups[i];
    if (groups[i] != 0 && first[i] < most && groups[i] <= most - first[i]) continue;
    fail(Code::LimitExceeded, Stage::encode, shader.name, "%s: %u workgroups along axis %zu; %s runs 1 to %u",
         shader.name, first[i] + groups[i], i, core.vk.device.c_str(), most);
  }
  const VkCommandBuffer commands = self.part();
  if (!bindings.empty()) {
    const VkDescriptorSet set = self.sets.get(pipeline, bindings);
    core.vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &set, 0, nullptr);
  }
  if (self.bound_pipeline != pipeline.handle) {
    core.vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
    self.bound_pipeline = pipeline.handle;
  }
  if (!push.empty()) {
    core.vk.CmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                             static_cast<uint32_t>(push.size()), push.data());
  }
  if (!pipeline.in_pieces) {
    core.vk.CmdDispatch(commands, groups[0], groups[1], groups[2]);
  } else {
    core.vk.CmdDispatchBase(commands, first[0], first[1], first[2], groups[0], groups[1], groups[2]);
  }
}

void Commands::copy(Slice from, Slice to) {
  impl_->must_record();
  if (from.bytes < to.bytes) {
    fail(Code::Internal, Stage::encode, "copy", "a copy of %llu bytes from a slice of %llu",
         static_cast<unsigned long long>(to.bytes), static_cast<unsigned long long>(from.bytes));
  }
  if (to.bytes == 0) return;
  const VkBufferCopy region{from.offset, to.offset, to.bytes};
  impl_->core.vk.CmdCopyBuffer(impl_->part(), from.buffer, to.buffer, 1, &region);
}

void Commands::discard(std::span<const Image> images) {
  impl_->must_record();
  std::vector<VkImageMemoryBarrier> barriers;
  for (const Image& image : images) {
    VkImageMemoryBarrier& barrier = barriers.emplace_back();
    barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
    barrier.srcAccessMask = kWrites;
    barrier.dstAccessMask = kReads | kWrites;
    barrier.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
    barrier.newLayout = VK_IMAGE_LAYOUT_GENERAL;
    barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.image = image.handle();
    barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  }
  if (barriers.empty()) return;
  impl_->core.vk.CmdPipelineBarrier(impl_->part(), kWork, kWork, 0, 0, nullptr, 0, nullptr,
                                    static_cast<uint32_t>(barriers.size()), barriers.data());
}

void Commands::fill(Slice target, uint32_t word) {
  impl_->must_record();
  if (target.bytes == 0) return;
  if (target.offset % 4 != 0) {
    fail(Code::Internal, Stage::encode, "fill", "offset %llu is not a multiple of 4",
         static_cast<unsigned long long>(target.offset));
  }
  // Up to the end of the last word; tensors reach to the next multiple of 16 bytes.
  impl_->core.vk.CmdFillBuffer(impl_->part(), target.buffer, target.offset, (target.bytes + 3) / 4 * 4, word);
}

void Commands::barrier() {
  impl_->must_record();
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = kWrites;
  memory.dstAccessMask = kReads | kWrites;
  impl_->core.vk.CmdPipelineBarrier(impl_->part(), kWork, kWork, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Commands::host_barrier() {
  impl_->must_record();
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = kWrites;
  memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  impl_->core.vk.CmdPipelineBarrier(impl_->part(), kWork, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, nullptr, 0,
                                    nullptr);
}

void Commands::timestamp(uint32_t index) {
  impl_->must_record();
  if (index >= impl_->num_queries) {
    fail(Code::Internal, Stage::encode, "timestamps", "timestamp %u of %u", index, impl_->num_queries);
  }
  impl_->core.vk.CmdWriteTimestamp(impl_->part(), VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, impl_->queries, index);
}

std::vector<double> Commands::timestamps_us() const {
  const Impl& self = *impl_;
  const Core& core = self.core;
  std::vector<uint64_t> ticks(self.num_queries);
  std::vector<double> result(self.num_queries);
  if (ticks.empty()) return result;
  VK(core.vk, Stage::execute, "timestamps", GetQueryPoolResults, core.device, self.queries, 0, self.num_queries,
     ticks.size() * sizeof(uint64_t), ticks.data(), sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
  const uint32_t bits = core.physical.timestamp_bits;
  const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  for (size_t i = 0; i < ticks.size(); ++i) {
    result[i] = static_cast<double>((ticks[i] - ticks[0]) & mask) * core.physical.timestamp_period / 1000;
  }
  return result;
}

}  // namespace pumice::engine
