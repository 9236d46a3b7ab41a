#include "data/stores/inspect.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr int64_t kReadAtOnce = 1 << 18;  // tokens

int64_t bytes_of(const TokenStores& stores) {
  int64_t bytes = 0;
  for (const auto& store : stores) bytes += store->info().bytes;
  return bytes;
}

// The bytes of a store's file that `tokens` of its tokens take.
int64_t share_of(const TokenStore& store, int64_t tokens) {
  return static_cast<int64_t>(double(tokens) / double(std::max<int64_t>(store.tokens(), 1)) *
                              double(store.info().bytes));
}

// Reads a whole store. Returns its largest id.
int32_t check_store(const TokenStore& store, int64_t vocab_size, const std::function<void(int64_t)>& progress) {
  int64_t tokens = 0;
  int64_t documents = 0;
  if (store.knows_documents()) {
    store.for_each_part([&](const DocumentPart& part) {
      tokens += part.tokens;
      if (part.ends) ++documents;
    });
    if (tokens != store.tokens()) {
      fail(Kind::kData,
           str("the documents of ", store.path(), " have ", tokens, " tokens; the file has ", store.tokens()));
    }
    if (store.info().documents > 0 && documents != store.info().documents) {
      fail(Kind::kData, str(store.path(), " has ", documents, " documents; its index says ", store.info().documents));
    }
  }
  int32_t largest = -1;
  std::vector<int32_t> ids;
  for (int64_t at = 0; at < store.tokens(); at += kReadAtOnce) {
    ids.resize(std::min(kReadAtOnce, store.tokens() - at));
    store.read(at, vocab_size, ids);
    largest = std::max(largest, *std::max_element(ids.begin(), ids.end()));
    progress(at + std::ssize(ids));
  }
  return largest;
}

}  // namespace

LengthHistogram document_lengths(const TokenStores& stores, const std::function<void(int64_t, int64_t)>& progress) {
  LengthHistogram out;
  const int64_t total = bytes_of(stores);
  int64_t before = 0;
  int64_t length = 0;
  const auto end_document = [&] {
    const auto bucket = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(length)));
    ++out.counts[bucket];
    out.tokens[bucket] += length;
    out.longest = std::max(out.longest, length);
    ++out.documents;
    length = 0;
  };
  std::vector<int32_t> starts;
  for (const auto& store : stores) {
    if (length > 0) {  // the last document of a file may go on in the next one
      starts.clear();
      if (store->tokens() > 0) store->document_starts(0, 1, 0, starts);
      if (!starts.empty()) end_document();
    }
    int64_t passed = 0;
    store->for_each_part([&](const DocumentPart& part) {
      length += part.tokens;
      passed += part.tokens;
      if (progress) progress(before + share_of(*store, passed), total);
      if (part.ends) end_document();
    });
    before += store->info().bytes;
  }
  if (length > 0) end_document();
  return out;
}

SourceReport verify_source(const SourceOptions& source, const std::function<void(int64_t, int64_t)>& progress) {
  SourceReport report;
  if (detect_format(source) == SourceFormat::kTokamak) {
    static_cast<VerifyReport&>(report) = verify_dataset(source.path, progress);
    return report;
  }
  const auto attempt = [&](const std::function<void()>& check) {
    try {
      check();
    } catch (const Error& error) {
      if (error.kind() != Kind::kData) throw;
      report.problems.emplace_back(error.what());
    }
  };
  FilePool pool;
  OpenSource open;
  if (is_text_source(source)) open = open_source(source, pool);  // refuses it: text is not damaged
  attempt([&] { open = open_source(source, pool); });
  const int64_t vocab_size = open.manifest.vocab_size > 0 ? open.manifest.vocab_size : int64_t{1} << 31;
  const int64_t total = bytes_of(open.stores);
  for (const auto& store : open.stores) {
    std::string remark = "checksums differ";
    attempt([&] {
      remark = store->check_sums([&](int64_t bytes) {
        if (progress) progress(report.bytes + bytes, total);
      });
    });
    if (report.checksums.find(remark) == std::string::npos) {
      report.checksums += (report.checksums.empty() ? "" : "; ") + remark;
    }
    attempt([&] {
      const int32_t largest = check_store(*store, vocab_size, [&](int64_t tokens) {
        if (progress) progress(report.bytes + share_of(*store, tokens), total);
      });
      report.largest_id = std::max(report.largest_id, largest);
    });
    ++report.shards;
    report.tokens += store->tokens();
    report.documents += store->info().documents;
    report.bytes += store->info().bytes;
  }
  const auto knows = [](const auto& store) { return store->knows_documents(); };
  if (report.documents == 0 && report.problems.empty() && std::all_of(open.stores.begin(), open.stores.end(), knows)) {
    attempt([&] { report.documents = document_lengths(open.stores).documents; });
  }
  return report;
}

}  // namespace tokamak
