// tests/golden/text_rules.jsonl: texts, and what datatrove and spaCy made of them.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/lines.h"
#include "formats/json.h"
#include "support/test_data.h"

namespace tokamak {

// Calls take(row, text) for each.
template <class Take>
void for_each_golden_text(const Take& take) {
  LineReader lines(test_data() + "/text_rules.jsonl");
  for (std::string line; lines.next(line);) {
    const JsonDocument row(line, {str(lines.path(), ":", lines.line_number())}, JsonRules::kLenient);
    take(row.root(), row["text"].text());
  }
  REQUIRE(lines.line_number() > 80);
}

}  // namespace tokamak
