#include "cuda/attention_cudnn_tensors.h"

#include "base/strings.h"

namespace tokamak {
namespace {

using Element = uint16_t;  // bf16

bool of_keys(CallTensor tensor) { return tensor == kKey || tensor == kValue || tensor == kDKey || tensor == kDValue; }

// (B, heads, T, D) in one piece.
HeadStrides separate_strides(const AttentionGraphSpec& spec, CallTensor tensor) {
  const auto& [hq, hkv, d] = spec.heads;
  const int64_t heads = of_keys(tensor) ? hkv : hq, tokens = spec.documents.tokens(), t = spec.documents.length;
  int64_t offset = 0;
  if (tensor == kKey || tensor == kDKey) offset = tokens * spec.heads.q_width();
  if (tensor == kValue || tensor == kDValue) offset = tokens * (spec.heads.q_width() + spec.heads.kv_width());
  return {offset, heads * t * d, t * d, d};
}

HeadStrides strides_of(const AttentionGraphSpec& spec, CallTensor tensor) {
  const int64_t length = spec.documents.length;
  if (spec.separate_tensors) {
    return tensor == kStats ? packed_lse_strides(spec.heads, length) : separate_strides(spec, tensor);
  }
  switch (tensor) {
    case kQuery:
    case kDQuery:
      return query_strides(spec.heads, length);
    case kKey:
    case kDKey:
      return key_strides(spec.heads, length);
    case kValue:
    case kDValue:
      return value_strides(spec.heads, length);
    case kStats:
      return spec.backward ? packed_lse_strides(spec.heads, length) : lse_strides(spec.documents);
    default:
      return out_strides(spec.heads, length);
  }
}

}  // namespace

CallTensorShape shape_of(const AttentionGraphSpec& spec, CallTensor tensor) {
  if (tensor == kScale) return {{1, 1, 1, 1}, {1, 1, 1, 1}, true};
  const auto& [b, t] = spec.documents;
  const auto& [hq, hkv, d] = spec.heads;
  const HeadStrides s = strides_of(spec, tensor);
  return {
      {b, of_keys(tensor) ? hkv : hq, t, tensor == kStats ? 1 : d}, {s.batch, s.head, s.token, 1}, tensor == kStats};
}

std::vector<std::pair<int64_t, void*>> addresses_of(const AttentionGraphSpec& spec, const AttentionPointers& p,
                                                    float* scale) {
  const auto in = [&](void* whole, CallTensor tensor) -> std::pair<int64_t, void*> {
    return {tensor, static_cast<Element*>(whole) + strides_of(spec, tensor).offset};
  };
  std::vector<std::pair<int64_t, void*>> addresses = {in(p.qkv, kQuery), in(p.qkv, kKey), in(p.qkv, kValue),
                                                      {kOut, p.out},     {kStats, p.lse}, {kScale, scale}};
  if (spec.backward) {
    addresses.insert(addresses.end(), {{kDOut, p.dout}, in(p.dqkv, kDQuery), in(p.dqkv, kDKey), in(p.dqkv, kDValue)});
  }
  return addresses;
}

std::string one_line(std::string message) {
  while (!message.empty() && message.back() == '\n') message.pop_back();
  const size_t first = message.find('\n');
  return first == std::string::npos ? message
                                    : str(message.substr(0, first), " ... ", message.substr(message.rfind('\n') + 1));
}

}  // namespace tokamak
