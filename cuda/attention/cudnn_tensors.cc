#include "cuda/attention/cudnn_tensors.h"

#include "base/strings.h"

namespace tokamak {
namespace {

using Element = uint16_t;  // bf16

bool of_keys(int64_t tensor) { return tensor == kKey || tensor == kValue || tensor == kDKey || tensor == kDValue; }

// Contiguous (B, heads, T, D).
HeadStrides separate_strides(const AttentionGraphSpec& spec, int64_t tensor) {
  const auto& [hq, hkv, d] = spec.heads;
  const int64_t heads = of_keys(tensor) ? hkv : hq, tokens = spec.documents.tokens(), t = spec.documents.length;
  int64_t offset = 0;
  if (tensor == kKey || tensor == kDKey) offset = tokens * spec.heads.q_width();
  if (tensor == kValue || tensor == kDValue) offset = tokens * (spec.heads.q_width() + spec.heads.kv_width());
  return {offset, heads * t * d, t * d, d};
}

HeadStrides strides_of(const AttentionGraphSpec& spec, int64_t tensor) {
  const int64_t length = spec.documents.length;
  const auto& [hq, hkv, d] = spec.heads;
  if (tensor == kStats && spec.documents.ragged()) return ragged_lse_strides(spec.heads, length);
  if (tensor == kStats && !spec.backward && !spec.separate_tensors) return lse_strides(spec.documents);
  if (tensor == kStats) return packed_lse_strides(spec.heads, length);
  if (spec.separate_tensors) return separate_strides(spec, tensor);
  if (of_keys(tensor) && spec.own_keys()) return own_strides(hkv, d, length);
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
    default:
      return own_strides(hq, d, length);
  }
}

}  // namespace

CallTensorShape shape_of(const AttentionGraphSpec& spec, int64_t tensor) {
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  const auto& [hq, hkv, d] = spec.heads;
  const int64_t b = spec.documents.count, t = spec.documents.length;
  if (tensor == kScale) return {ones, ones, CallType::kF32};
  if (tensor >= kOffsets) return {{b + 1, 1, 1, 1}, ones, CallType::kI64};
  if (tensor >= kQueryLengths) return {{b, 1, 1, 1}, ones, CallType::kI32};
  const HeadStrides s = strides_of(spec, tensor);
  return {{b, of_keys(tensor) ? hkv : hq, t, tensor == kStats ? 1 : d},
          {s.batch, s.head, s.token, 1},
          tensor == kStats ? CallType::kF32 : CallType::kBF16};
}

std::optional<int64_t> offsets_of(const AttentionGraphSpec& spec, int64_t tensor) {
  if (!spec.documents.ragged() || tensor == kScale || tensor >= kQueryLengths) return std::nullopt;
  if (tensor == kOut || tensor == kDOut) return offsets_in(DocumentTables::kQueryRows);
  if (tensor == kStats) return offsets_in(DocumentTables::kLseRows);
  return offsets_in(of_keys(tensor) && spec.own_keys() ? DocumentTables::kKeyRows : DocumentTables::kQkvRows);
}

std::vector<std::pair<int64_t, void*>> addresses_of(const AttentionGraphSpec& spec, const AttentionPointers& p,
                                                    float* scale) {
  const auto in = [&](void* whole, CallTensor tensor) -> std::pair<int64_t, void*> {
    return {tensor, static_cast<Element*>(whole) + strides_of(spec, tensor).offset};
  };
  const bool own = spec.own_keys();
  std::vector<std::pair<int64_t, void*>> addresses = {in(p.qkv, kQuery),
                                                      in(own ? p.own_keys[0] : p.qkv, kKey),
                                                      in(own ? p.own_keys[1] : p.qkv, kValue),
                                                      {kOut, p.out},
                                                      {kStats, p.lse},
                                                      {kScale, scale}};
  if (spec.backward) {
    addresses.insert(addresses.end(), {{kDOut, p.dout},
                                       in(p.dqkv, kDQuery),
                                       in(own ? p.own_keys[2] : p.dqkv, kDKey),
                                       in(own ? p.own_keys[3] : p.dqkv, kDValue)});
  }
  if (spec.documents.ragged()) {
    const DocumentTableLayout tables(p.table_entries, spec.heads);
    auto* memory = static_cast<std::byte*>(p.tables);
    addresses.insert(addresses.end(),
                     {{kQueryLengths, memory + tables.lengths_at()}, {kKeyLengths, memory + tables.lengths_at()}});
    for (int64_t n = 0; n < DocumentTables::kOffsets; ++n) {
      const auto rows = DocumentTables::Offsets(n);
      addresses.emplace_back(offsets_in(rows), memory + tables.offsets_at(rows));
    }
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
