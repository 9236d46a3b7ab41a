// Our tensors in cuDNN's terms: when a call is a batch of equal documents, and the address of each element.
#include <catch2/catch.hpp>
#include <set>

#include "cuda/attention/cudnn_layout.h"

using namespace tokamak;

TEST_CASE("documents are uniform exactly if as many as fit hold all tokens") {
  CHECK(uniform_documents(12, 3, 4) == DocumentBatch{3, 4});
  CHECK(uniform_documents(4, 1, 4) == DocumentBatch{1, 4});
  CHECK(uniform_documents(5, 5, 1) == DocumentBatch{5, 1});
  CHECK_FALSE(uniform_documents(12, 4, 4));  // some documents are shorter, or empty
  CHECK_FALSE(uniform_documents(12, 2, 7));
  CHECK_FALSE(uniform_documents(13, 3, 4));
  CHECK_FALSE(uniform_documents(4, 1, 5));  // max_length is a bound only
  CHECK_FALSE(uniform_documents(0, 0, 4));
  CHECK_FALSE(uniform_documents(0, 0, 0));
  CHECK_FALSE(uniform_documents(4, 4, 0));
}

TEST_CASE("ragged documents have a power of two of slots, and whole tiles of tokens") {
  CHECK(ragged_documents(1, 128, 8192) == DocumentBatch{1, 128, 8192});
  CHECK(ragged_documents(5, 1000, 8192) == DocumentBatch{8, 1024, 8192});
  CHECK(ragged_documents(8, 1, 8192) == DocumentBatch{8, 128, 8192});
  CHECK(ragged_documents(9, 129, 8192) == DocumentBatch{16, 256, 8192});
  CHECK(ragged_documents(9, 129, 8192).tokens() == 8192);
  CHECK_FALSE(DocumentBatch{4, 1000}.ragged());
}

TEST_CASE("slots are supported up to 64 per document of full length") {
  CHECK(most_slots({1, 8192, 8192}) == 64);
  CHECK(most_slots({1, 8192, 100}) == 64);
  CHECK(most_slots({1, 2048, 16384}) == 512);
  CHECK(most_slots({1, 2048, 16385}) == 1024);
}

namespace {

// The offsets of all elements, each of which must occur once.
std::set<int64_t> offsets(const HeadStrides& s, int64_t batch, int64_t heads, int64_t tokens, int64_t dim) {
  std::set<int64_t> out;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t i = 0; i < dim; ++i) {
          CHECK(out.insert(s.offset + b * s.batch + h * s.head + t * s.token + i).second);
        }
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("queries, keys and values tile the packed rows, as ops.h lays them out") {
  const HeadLayout heads{4, 2, 8};
  const DocumentBatch documents{3, 5};
  const int64_t width = heads.qkv_width();
  // Document 2, token 3, head 1, element 6.
  const int64_t row = (2 * 5 + 3) * width;
  const auto at = [&](const HeadStrides& s) { return s.offset + 2 * s.batch + 1 * s.head + 3 * s.token + 6; };
  CHECK(at(query_strides(heads, 5)) == row + 8 + 6);
  CHECK(at(key_strides(heads, 5)) == row + 32 + 8 + 6);
  CHECK(at(value_strides(heads, 5)) == row + 32 + 16 + 8 + 6);
  CHECK(at(own_strides(4, 8, 5)) == (2 * 5 + 3) * 32 + 8 + 6);

  std::set<int64_t> all = offsets(query_strides(heads, 5), 3, 4, 5, 8);
  all.merge(offsets(key_strides(heads, 5), 3, 2, 5, 8));
  all.merge(offsets(value_strides(heads, 5), 3, 2, 5, 8));
  CHECK(static_cast<int64_t>(all.size()) == documents.tokens() * width);
  CHECK(*all.rbegin() == documents.tokens() * width - 1);
}

TEST_CASE(
    "statistics lie by head for us, by document or by token for cuDNN's backward, and alike where there is one "
    "document") {
  const HeadLayout heads{4, 2, 8};
  const HeadStrides ours = lse_strides({3, 5}), packed = packed_lse_strides(heads, 5);
  CHECK(2 * ours.batch + 1 * ours.head + 3 * ours.token == 1 * 15 + 2 * 5 + 3);
  CHECK(2 * packed.batch + 1 * packed.head + 3 * packed.token == (2 * 4 + 1) * 5 + 3);
  const HeadStrides ragged = ragged_lse_strides(heads, 5);  // of its document, which begins at token 7
  CHECK(7 * 4 + 1 * ragged.head + 3 * ragged.token == (7 + 3) * 4 + 1);
  const HeadStrides one = lse_strides({1, 5});
  CHECK(one.head == packed.head);
  CHECK(one.token == packed.token);
}

TEST_CASE("cuDNN moves 8 elements of bf16 at a time") {
  CHECK(aligned_for_cudnn({4, 2, 64}));
  CHECK(aligned_for_cudnn({1, 1, 8}));
  CHECK_FALSE(aligned_for_cudnn({4, 2, 12}));
  CHECK_FALSE(aligned_for_cudnn({4, 2, 66}));
}
