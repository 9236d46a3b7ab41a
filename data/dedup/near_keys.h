// The keys by which each kind of deduplication finds copies, and the rule that makes a pair of two documents.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "data/dedup/bands.h"
#include "data/dedup/minhash.h"
#include "data/dedup/simhash.h"

namespace tokamak {

// Texts that are equal.
struct ExactOptions {
  template <class Visitor>
  void fields(Visitor&) {}
};

// Fingerprints that differ in few bits. 64 bits within 3 find nearly equal texts only (cosine 0.99); 128 within 18 are
// near FineWeb's MinHash, and are found by sampling.
struct SimHashOptions {
  int64_t bits = 64;
  int64_t distance = 3;
  int64_t tables = 20;

  template <class Visitor>
  void fields(Visitor& v) {
    v("bits", bits, "fingerprint bits, 64 or 128; 128 tell texts apart better and take twice the space");
    v("distance", distance, "differing bits of two copies, at most; more finds less similar ones");
    v("tables", tables, "orders of the bits in which copies are sought; more finds more of them, and takes more time");
  }
};

// Each thread has its own.
class NearKeys {
 public:
  virtual ~NearKeys() = default;
  virtual int64_t bands() const = 0;
  virtual BandRule rule() const = 0;
  // One key for each band, or none for a text that has no copies.
  virtual void keys(std::string_view text, std::vector<BandKey>& keys) = 0;
};

std::unique_ptr<NearKeys> make_near_keys(const ExactOptions& options);
std::unique_ptr<NearKeys> make_near_keys(const MinHashOptions& options, WordRules rules);
std::unique_ptr<NearKeys> make_near_keys(const SimHashOptions& options);

// The orders of bits of SimHash's tables: for each the bits that come first, the prefix. If the bits can be cut into
// blocks such that copies agree in all but `distance` of them, every pair is found; else bits are drawn.
struct BitOrders {
  int64_t prefix_bits = 0;
  std::vector<std::vector<uint8_t>> orders;  // of all bits
};
BitOrders bit_orders(const SimHashOptions& options);

}  // namespace tokamak
