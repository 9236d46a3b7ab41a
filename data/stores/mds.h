// MosaicML's MDS shards: a directory with index.json (mds_index.h) is one store, and a sample is a document.
//
//   shard  := u32 samples, u32 offset[samples + 1], configuration, sample[samples]      little-endian
//   sample := u32 size[columns without a fixed size], the columns' bytes
//
// Only the samples say how many tokens they have. So opening reads the first bytes of each sample, and a compressed
// shard whole. At most kMdsCacheBytes of decompressed shards are in memory.
#pragma once

#include <memory>
#include <string>

#include "data/element_type.h"
#include "data/file_pool.h"
#include "data/token_store.h"

namespace tokamak {

inline constexpr int64_t kMdsCacheBytes = int64_t{1} << 30;

// `type`: of the tokens in a column of bytes. Error(kData) if a file is missing, has another size than the index says,
// or contradicts it.
std::unique_ptr<TokenStore> open_mds(const std::string& directory, TokenElement type, FilePool& pool);

// The type of the tokens of a store that open_mds returned, the widest if shards differ; kAuto for other stores.
TokenElement mds_token_type(const TokenStore& store);

}  // namespace tokamak
