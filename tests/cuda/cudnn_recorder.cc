#include "cuda/cudnn_recorder.h"

#include <cudnn.h>

#include <cstring>
#include <map>
#include <utility>

#include "base/strings.h"

namespace tokamak {
namespace {

constexpr int64_t kCallTensors = 10;  // have ids up to this; see attention_cudnn_tensors.h

struct Descriptor {
  struct Value {
    std::vector<int64_t> numbers;
    std::vector<Descriptor> parts;  // as they were when they were handed over: often they are gone soon after
    cudnnBackendDescriptor_t handle = nullptr;
  };
  cudnnBackendDescriptorType_t type{};
  std::map<int, Value> values;  // by attribute
  bool finalized = false;
  int64_t workspace_bytes = 0;  // of a plan, once it was asked

  int64_t number(int attribute, int64_t otherwise = 0) const {
    const auto found = values.find(attribute);
    return found == values.end() ? otherwise : found->second.numbers.at(0);
  }
};

std::map<cudnnBackendDescriptor_t, Descriptor> descriptors;
std::map<int64_t, size_t> numbers;     // in the text, of the last graph's tensors by id
std::map<int64_t, Descriptor> inputs;  // of those that do not stay inside it
std::string text;
bool handle_for_graph = false;
RecordedRun run;
cudnnBackendDescriptor_t pretended = nullptr;

size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:
      return 4;
  }
}

std::string name_of(int attribute) {
  static const std::map<int, std::string> names = {
      {CUDNN_ATTR_POINTWISE_MODE, "mode"},         {CUDNN_ATTR_POINTWISE_MATH_PREC, "compute"},
      {CUDNN_ATTR_POINTWISE_AXIS, "axis"},         {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, "pointwise"},
      {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, "x"}, {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, "b"},
      {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, "t"}, {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, "y"},
      {CUDNN_ATTR_MATMUL_COMP_TYPE, "compute"},    {CUDNN_ATTR_OPERATION_MATMUL_DESC, "matmul"},
      {CUDNN_ATTR_OPERATION_MATMUL_ADESC, "a"},    {CUDNN_ATTR_OPERATION_MATMUL_BDESC, "b"},
      {CUDNN_ATTR_OPERATION_MATMUL_CDESC, "c"},    {CUDNN_ATTR_REDUCTION_OPERATOR, "mode"},
      {CUDNN_ATTR_REDUCTION_COMP_TYPE, "compute"}, {CUDNN_ATTR_OPERATION_REDUCTION_DESC, "reduction"},
      {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, "x"}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, "y"},
      {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, "x"},   {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, "y"},
      {CUDNN_ATTR_TENSOR_DATA_TYPE, "type"},       {CUDNN_ATTR_TENSOR_DIMENSIONS, "dims"},
      {CUDNN_ATTR_TENSOR_STRIDES, "strides"},      {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, "alignment"},
      {CUDNN_ATTR_TENSOR_IS_VIRTUAL, "virtual"},   {CUDNN_ATTR_TENSOR_IS_BY_VALUE, "by_value"},
  };
  const auto found = names.find(attribute);
  return found == names.end() ? str("attribute_", attribute) : found->second;
}

// cuDNN takes the same where they are not given.
bool is_default(int attribute, const Descriptor::Value& value) {
  switch (attribute) {
    case CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1:
    case CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2:
      return value.numbers == std::vector<int64_t>{0x3f800000};  // 1.0f
    case CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC:
      return value.numbers == std::vector<int64_t>{0};
    default:
      return false;
  }
}

std::string text_of(const Descriptor& descriptor);

std::string fields_of(const Descriptor& descriptor) {
  std::string fields;
  for (const auto& [attribute, value] : descriptor.values) {
    if (attribute == CUDNN_ATTR_TENSOR_UNIQUE_ID || is_default(attribute, value)) continue;
    std::string elements;
    for (const int64_t number : value.numbers) elements += str(elements.empty() ? "" : ",", number);
    for (const Descriptor& part : value.parts) elements += text_of(part);
    fields += str(fields.empty() ? "" : " ", name_of(attribute), "=", elements);
  }
  return fields;
}

// A tensor is its number, after a line of its own at first.
std::string text_of(const Descriptor& descriptor) {
  if (descriptor.type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) return str("{", fields_of(descriptor), "}");
  const int64_t id = descriptor.number(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  const auto [found, is_new] = numbers.emplace(id, numbers.size());
  if (is_new) {
    const bool is_input = descriptor.number(CUDNN_ATTR_TENSOR_IS_VIRTUAL) == 0;
    if (is_input) inputs[id] = descriptor;
    text += str("  #", found->second, ": ", fields_of(descriptor),
                is_input && id <= kCallTensors ? str(" id=", id) : "", "\n");
  }
  return str("#", found->second);
}

void record_finalized(const Descriptor& descriptor) {
  if (descriptor.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    numbers.clear();
    inputs.clear();
    handle_for_graph = descriptor.values.count(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) > 0;
    for (const Descriptor& operation : descriptor.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).parts) {
      const std::string line = fields_of(operation);
      text += str(operation.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR ? "reshape " : "", line, "\n");
    }
  } else if (descriptor.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
    text += str("heuristics ", descriptor.number(CUDNN_ATTR_ENGINEHEUR_MODE), "\n");
  } else if (descriptor.type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) {
    std::map<int64_t, int64_t> knobs;
    for (const Descriptor& knob : descriptor.values.at(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES).parts) {
      knobs[knob.number(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE)] = knob.number(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    }
    const Descriptor& engine = descriptor.values.at(CUDNN_ATTR_ENGINECFG_ENGINE).parts.at(0);
    text += str("engine ", engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
    for (const auto& [type, value] : knobs) text += str(", knob ", type, "=", value);
    text += "\n";
  }
}

void record_run(const Descriptor& plan, const Descriptor& pack) {
  const auto& ids = pack.values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).numbers;
  const auto& addresses = pack.values.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).numbers;
  const auto pointer = [](int64_t address) { return reinterpret_cast<char*>(address); };
  run = {{},
         ids.size(),
         pointer(pack.number(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)),
         plan.workspace_bytes,
         handle_for_graph,
         plan.finalized};
  for (const auto& [id, tensor] : inputs) {
    RecordedRun::Given given{id, 1, tensor.number(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0};
    for (const int64_t dim : tensor.values.at(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers) given.elements *= dim;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == id) given.address = pointer(addresses.at(i));
    }
    if (given.by_value && given.address != nullptr) std::memcpy(&given.value, given.address, sizeof(float));
    run.tensors.push_back(given);
  }
}

}  // namespace

std::string take_recorded_text() { return std::exchange(text, ""); }
RecordedRun recorded_run() { return run; }

extern "C" {

cudnnStatus_t __real_cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t*);
cudnnStatus_t __real_cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                              cudnnBackendAttributeType_t, int64_t, const void*);
cudnnStatus_t __real_cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                              cudnnBackendAttributeType_t, int64_t, int64_t*, void*);
cudnnStatus_t __real_cudnnBackendFinalize(cudnnBackendDescriptor_t);

cudnnStatus_t __wrap_cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                  cudnnBackendDescriptor_t* descriptor) {
  const cudnnStatus_t status = __real_cudnnBackendCreateDescriptor(type, descriptor);
  if (status == CUDNN_STATUS_SUCCESS) descriptors[*descriptor] = {type, {}};
  return status;
}

cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count, const void* elements) {
  Descriptor::Value value;
  for (size_t i = 0; i < static_cast<size_t>(count) && type != CUDNN_TYPE_CHAR; ++i) {
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      value.handle = static_cast<const cudnnBackendDescriptor_t*>(elements)[i];
      value.parts.push_back(descriptors[value.handle]);
    } else {
      const size_t size = bytes_of(type);
      std::memcpy(&value.numbers.emplace_back(), static_cast<const char*>(elements) + i * size, size);
    }
  }
  descriptors[descriptor].values[name] = std::move(value);
  if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE) return CUDNN_STATUS_SUCCESS;  // it is none
  return __real_cudnnBackendSetAttribute(descriptor, name, type, count, elements);
}

cudnnStatus_t __wrap_cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t room, int64_t* count,
                                              void* elements) {
  if (name != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    return __real_cudnnBackendGetAttribute(descriptor, name, type, room, count, elements);
  }
  Descriptor& plan = descriptors[descriptor];
  const auto config = plan.values.at(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).handle;
  const cudnnStatus_t status =
      __real_cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, type, room, count, elements);
  std::memcpy(&plan.workspace_bytes, elements, sizeof(int64_t));
  return status;
}

cudnnStatus_t __wrap_cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Descriptor& known = descriptors[descriptor];
  record_finalized(known);
  known.finalized = true;
  if (known.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  const bool of_heuristics = known.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR;
  const auto device = of_heuristics ? CUDNN_ATTR_ENGINEHEUR_DEVICEPROP : CUDNN_ATTR_ENGINE_DEVICEPROP;
  if ((of_heuristics || known.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR) && known.values.count(device) == 0) {
    __real_cudnnBackendSetAttribute(descriptor, device, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pretended);
  }
  return __real_cudnnBackendFinalize(descriptor);
}

cudnnStatus_t __wrap_cudnnGetStream(cudnnHandle_t, cudaStream_t* stream) {
  *stream = nullptr;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t __wrap_cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  record_run(descriptors[plan], descriptors[pack]);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"

void pretend_gpu(const std::string& description) {
  if (pretended != nullptr) cudnnBackendDestroyDescriptor(pretended);
  __real_cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &pretended);
  __real_cudnnBackendSetAttribute(pretended, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                  static_cast<int64_t>(description.size()), description.data());
  __real_cudnnBackendFinalize(pretended);
}

}  // namespace tokamak
