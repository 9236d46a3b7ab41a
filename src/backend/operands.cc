#include "backend/operands.h"

#include <algorithm>
#include <cstring>

namespace tokamak {

namespace {

constexpr Access kWrite = Access::kWrite, kReadWrite = Access::kReadWrite, kRead = Access::kRead;

Access output(Write write) { return write == Write::kAccumulate ? kReadWrite : kWrite; }

// Bytes of `count` rows as wide as the table's; lookups may repeat rows.
int64_t row_bytes(const Tensor& table, int64_t count) {
  return table.count() == 0 ? 0 : count * table.bytes() / table.dim(0);
}

// Bytes of the query and key heads in qkv.
int64_t rotated_bytes(const Tensor& qkv, const HeadLayout& heads) {
  return row_bytes(qkv, qkv.dim(0)) / heads.qkv_width() * (heads.q_width() + heads.kv_width());
}

}  // namespace

bool Operand::may_be(const Operand& other) const {
  return std::any_of(same_as.begin(), same_as.end(),
                     [&](const char* allowed) { return allowed != nullptr && std::strcmp(allowed, other.name) == 0; });
}

bool Operand::is_positive() const {
  const auto positive = {"rstd", "lse", "control", "exp_avg_sq", "sums"};
  return std::any_of(positive.begin(), positive.end(), [&](const char* p) { return std::strcmp(name, p) == 0; });
}

Operands::Operands(std::initializer_list<Operand> operands) : size_(operands.size()) {
  static_assert(std::is_trivially_copyable_v<Operand>);
  std::copy(operands.begin(), operands.end(), operands_.begin());
}

double Operands::bytes() const {
  double bytes = 0;
  for (const Operand& operand : *this) bytes += double(*operand.tensor ? operand.bytes() : 0);
  return bytes;
}

Operands operands_of(Gemm& g) {
  return {{g.trans_a == Transpose::kYes ? "a^T" : "a", &g.a},
          {g.trans_b == Transpose::kYes ? "b^T" : "b", &g.b},
          {"residual", &g.residual},
          {"bias", &g.bias},
          {"c", &g.c, output(g.write)}};
}

Operands operands_of(Embedding& e) {
  return {{"ids", &e.ids},
          {.name = "table", .tensor = &e.table, .touched = row_bytes(e.table, e.ids.count())},
          {"out", &e.out, kWrite}};
}

Operands operands_of(EmbeddingBackward& e) {
  return {{"ids", &e.ids},
          {"dout", &e.dout},
          {.name = "dtable", .tensor = &e.dtable, .access = kReadWrite, .touched = row_bytes(e.dtable, e.ids.count())}};
}

Operands operands_of(RmsNorm& n) {
  return {
      {"x", &n.x}, {"weight", &n.weight}, {"onto", &n.onto}, {"y", &n.y, kWrite, {"onto"}}, {"rstd", &n.rstd, kWrite}};
}

Operands operands_of(RmsNormBackward& n) {
  return {{"dy", &n.dy},
          {"x", &n.x},
          {"weight", &n.weight},
          {"rstd", &n.rstd},
          {"dresidual", &n.dresidual},
          {"dx", &n.dx, kWrite, {"dy", "dresidual"}},
          {"dweight", &n.dweight, kReadWrite},
          {"y", &n.y, kWrite, {"dy"}}};
}

Operands operands_of(ColumnSums& c) { return {{"x", &c.x}, {"sums", &c.sums, kReadWrite}}; }

Operands operands_of(QkNorm& n) {
  return {{"qkv", &n.qkv},
          {"q_weight", &n.q_weight},
          {"k_weight", &n.k_weight},
          {"out", &n.out, kWrite, {"qkv"}},
          {"rstd", &n.rstd, kWrite}};
}

Operands operands_of(QkNormBackward& n) {
  return {{"qkv", &n.qkv},
          {"q_weight", &n.q_weight},
          {"k_weight", &n.k_weight},
          {"rstd", &n.rstd},
          {.name = "dqkv", .tensor = &n.dqkv, .access = kReadWrite, .touched = rotated_bytes(n.dqkv, n.heads)},
          {"dq_weight", &n.dq_weight, kReadWrite},
          {"dk_weight", &n.dk_weight, kReadWrite}};
}

Operands operands_of(Rope& r) {
  return {{"positions", &r.positions},
          {.name = "table", .tensor = &r.table, .touched = 0},  // small, and stays in a cache
          {.name = "qkv", .tensor = &r.qkv, .access = kReadWrite, .touched = rotated_bytes(r.qkv, r.heads)}};
}

Operands operands_of(DocumentTables& d) { return {{"cu_seqlens", &d.cu_seqlens}, {"tables", &d.tables, kWrite}}; }

Operands operands_of(Attention& a) {
  return {{"qkv", &a.qkv},
          {"cu_seqlens", &a.cu_seqlens},
          {"tables", &a.tables},
          {"out", &a.out, kWrite},
          {"lse", &a.lse, kWrite}};
}

Operands operands_of(AttentionBackward& a) {
  return {{"qkv", &a.qkv},   {"cu_seqlens", &a.cu_seqlens}, {"tables", &a.tables}, {"out", &a.out}, {"lse", &a.lse},
          {"dout", &a.dout}, {"dqkv", &a.dqkv, kWrite}};
}

Operands operands_of(CacheAppend& c) {
  const int64_t copied = row_bytes(c.qkv, c.qkv.dim(0)) / c.heads.qkv_width() * 2 * c.heads.kv_width();
  return {{.name = "qkv", .tensor = &c.qkv, .touched = copied},
          {"cu_seqlens", &c.sequences.cu_seqlens},
          {"slots", &c.sequences.slots},
          {"cached", &c.sequences.cached},
          {.name = "cache", .tensor = &c.cache, .access = kWrite, .touched = copied}};
}

Operands operands_of(CachedAttention& c) {
  const int64_t sequences = c.sequences.slots.count();
  const int64_t positions = c.cache.count() == 0 ? 1 : c.cache.dim(2);
  return {{"qkv", &c.qkv},
          {"cu_seqlens", &c.sequences.cu_seqlens},
          {"slots", &c.sequences.slots},
          {"cached", &c.sequences.cached},
          {.name = "cache", .tensor = &c.cache, .touched = row_bytes(c.cache, sequences) / positions * c.max_length},
          {"out", &c.out, kWrite}};
}

Operands operands_of(SwiGlu& s) { return {{"gate_up", &s.gate_up}, {"out", &s.out, kWrite}}; }

Operands operands_of(SwiGluBackward& s) {
  return {{"gate_up", &s.gate_up},
          {"dout", &s.dout},
          {"dgate_up", &s.dgate_up, kWrite, {"gate_up"}},
          {"out", &s.out, kWrite, {"dout"}}};
}

Operands operands_of(SoftCap& s) { return {{"x", &s.x, kReadWrite}}; }

Operands operands_of(LinearCrossEntropy& l) {
  return {{"hidden", &l.hidden},           {"weight", &l.weight},
          {"targets", &l.targets},         {"token_loss", &l.token_loss, kWrite},
          {"greedy", &l.greedy, kWrite},   {"sums", &l.sums, kReadWrite},
          {"dhidden", &l.dhidden, kWrite}, {"dweight", &l.dweight, output(l.write)}};
}

Operands operands_of(ControlStep& c) {
  return {{"sums", &c.sums}, {"unit_sums", &c.unit_sums}, {"control", &c.control, kWrite}};
}
Operands operands_of(ClipUnit& c) { return {{"unit_sums", &c.unit_sums}, {"sums", &c.sums}, {"x", &c.x, kReadWrite}}; }

Operands operands_of(AdamW& a) {
  return {{"grad", &a.grad},
          {"control", &a.control},
          {"master", &a.master, kReadWrite},
          {"exp_avg", &a.exp_avg, kReadWrite},
          {"exp_avg_sq", &a.exp_avg_sq, kReadWrite},
          {"weights", &a.weights, kWrite},
          {"updates", &a.updates, kWrite, {"grad"}}};
}

Operands operands_of(MuonMomentum& m) {
  return {{"grad", &m.grad},
          {"control", &m.control},
          {"momentum", &m.momentum, kReadWrite},
          {"direction", &m.direction, kWrite}};
}

Operands operands_of(Normalize& n) { return {{"x", &n.x, kReadWrite}, {"norm", &n.norm, kWrite}}; }

Operands operands_of(MuonUpdate& m) {
  return {{"direction", &m.direction},
          {"control", &m.control},
          {"master", &m.master, kReadWrite},
          {"weights", &m.weights, kWrite},
          {"updates", &m.updates, kWrite}};
}

Operands operands_of(SumSquares& s) { return {{"x", &s.x}, {"sums", &s.sums, kReadWrite}}; }
Operands operands_of(Statistics& s) {
  return {{"x", &s.x}, {"divisor", &s.divisor}, {"out", &s.out, kWrite}, {"magnitudes", &s.magnitudes, kWrite}};
}
Operands operands_of(Checksum& c) { return {{"x", &c.x}, {"sum", &c.sum, kReadWrite}}; }
Operands operands_of(Cast& c) { return {{"src", &c.src}, {"dst", &c.dst, output(c.write)}}; }
Operands operands_of(Average& a) { return {{"x", &a.x}, {"average", &a.average, kReadWrite}}; }
Operands operands_of(ZeroNonFinite& z) { return {{"x", &z.x, kReadWrite}}; }
Operands operands_of(Fill& f) { return {{"x", &f.x, kWrite}}; }
Operands operands_of(RandomNormal& r) { return {{"x", &r.x, kWrite}}; }

}  // namespace tokamak
