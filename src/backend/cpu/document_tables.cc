// The tables of a micro-batch's documents: a few kilobytes, by one thread.
#include "backend/document_tables.h"

#include <cstddef>
#include <cstring>

#include "backend/cpu/cpu_ops.h"

namespace tokamak {

void CpuOps::do_document_tables(Stream&, const DocumentTables& args) {
  const DocumentTableLayout layout(args.tables.dim(1), args.heads);
  const auto* cu = args.cu_seqlens.as<int32_t>();
  const int64_t documents = args.cu_seqlens.count() - 1;
  auto* memory = static_cast<std::byte*>(args.tables.data());
  const auto put = [&](int64_t table, int64_t entry, auto value) {
    std::memcpy(memory + table + entry * int64_t{sizeof(value)}, &value, sizeof(value));
  };
  for (int64_t entry = 0; entry < layout.entries; ++entry) {
    for (int64_t rows = 0; rows < DocumentTables::kOffsets; ++rows) {
      put(layout.offsets_at(DocumentTables::Offsets(rows)), entry,
          document_offset(cu, documents, entry, layout.widths[rows]));
    }
    put(layout.lengths_at(), entry, document_length(cu, documents, entry));
  }
}

}  // namespace tokamak
