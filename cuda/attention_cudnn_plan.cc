#include "cuda/attention_cudnn_plan.h"

#include "base/strings.h"
#include "cuda/attention_cudnn_operations.h"

namespace tokamak {
namespace {

std::vector<CudnnDescriptor> empty_descriptors(cudnnBackendDescriptorType_t type, int64_t count) {
  std::vector<CudnnDescriptor> made;
  for (int64_t i = 0; i < count; ++i) made.emplace_back(type);
  return made;
}

// The descriptors that are an attribute's value. cuDNN fills ones that the caller has made.
std::vector<CudnnDescriptor> parts_of(const CudnnDescriptor& whole, cudnnBackendAttributeName_t name,
                                      cudnnBackendDescriptorType_t type, int64_t room) {
  std::vector<CudnnDescriptor> parts = empty_descriptors(type, room);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor& part : parts) raw.push_back(part.get());
  int64_t count = 0;
  if (whole.get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.data(), room, &count) != CUDNN_STATUS_SUCCESS) count = 0;
  while (static_cast<int64_t>(parts.size()) > count) parts.pop_back();
  return parts;
}

// What a mode of the heuristics proposes, best first.
std::vector<CudnnDescriptor> proposals(const CudnnDescriptor& graph, const CudnnDescriptor* device,
                                       cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
  if (device != nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device);
  if (!heuristics.finalize().ok()) return {};
  int64_t count = 0;
  if (heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, nullptr, 0, &count) !=
      CUDNN_STATUS_SUCCESS) {
    return {};
  }
  return parts_of(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count);
}

CudnnDescriptor configuration(const CudnnDescriptor& graph, const CudnnDescriptor* device,
                              const CudnnEngineChoice& choice) {
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice.engine);
  if (device != nullptr) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *device);
  engine.finalize();
  std::vector<CudnnDescriptor> knobs;
  for (const auto& [type, value] : choice.knobs) {
    knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, &type)
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value)
        .finalize();
  }
  CudnnDescriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine).set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knobs).finalize();
  return config;
}

// What may run the graph, best first.
std::vector<CudnnDescriptor> candidates(const CudnnDescriptor& graph, const CudnnDescriptor* device,
                                        const std::optional<CudnnEngineChoice>& choice) {
  std::vector<CudnnDescriptor> configs;
  if (choice) {
    configs.push_back(configuration(graph, device, *choice));
    return configs;
  }
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (CudnnDescriptor& config : proposals(graph, device, mode)) configs.push_back(std::move(config));
  }
  return configs;
}

// Whether the engine takes the graph, and its plan if there is a GPU to run it.
cudnnStatus_t complete(const CudnnDescriptor& config, cudnnHandle_t handle, CudnnDescriptor& plan, int64_t* bytes) {
  if (!config.ok()) return config.status();
  const auto status = config.get(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, bytes);
  if (status != CUDNN_STATUS_SUCCESS || handle == nullptr) return status;
  if (!plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config).finalize().ok()) return plan.status();
  return plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, bytes);
}

}  // namespace

std::optional<CudnnPlan> CudnnPlan::make(CudnnDescriptor graph, const CudnnTarget& target,
                                         const std::optional<CudnnEngineChoice>& choice, std::string* why_not) {
  std::optional<CudnnDescriptor> device;
  if (target.handle == nullptr) {
    device.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    device->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, target.description.data(),
                static_cast<int64_t>(target.description.size()));
    if (!device->finalize().ok()) {
      *why_not = cudnn_refusal(device->status(), "the GPU's description");
      return std::nullopt;
    }
  }
  auto configs = candidates(graph, device ? &*device : nullptr, choice);
  if (configs.empty()) *why_not = cudnn_refusal(CUDNN_STATUS_NOT_SUPPORTED, "the graph by every engine");
  for (CudnnDescriptor& config : configs) {
    CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    int64_t bytes = 0;
    const cudnnStatus_t status = complete(config, target.handle, plan, &bytes);
    if (status == CUDNN_STATUS_SUCCESS) return CudnnPlan(std::move(graph), std::move(config), std::move(plan), bytes);
    *why_not = cudnn_refusal(status, "a plan");
  }
  return std::nullopt;
}

std::string CudnnPlan::engine() const {
  const auto engines = parts_of(config_, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  int64_t number = 0;
  if (engines.empty() ||
      engines[0].get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &number) != CUDNN_STATUS_SUCCESS) {
    return "?";
  }
  std::string name = str("eng", number);
  for (const CudnnDescriptor& knob : parts_of(config_, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                              CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    cudnnBackendKnobType_t type{};
    int64_t value = 0;
    knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, &type);
    knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, &value);
    name += str("_k", static_cast<int>(type), "=", value);
  }
  return name;
}

cudnnStatus_t CudnnPlan::run(cudnnHandle_t handle, const std::vector<std::pair<int64_t, void*>>& addresses,
                             void* workspace) const {
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [id, pointer] : addresses) {
    ids.push_back(id);
    pointers.push_back(pointer);
  }
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(),
           static_cast<int64_t>(pointers.size()))
      .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspace);
  if (!pack.finalize().ok()) return pack.status();
  return cudnnBackendExecute(handle, plan_.get(), pack.get());
}

}  // namespace tokamak
