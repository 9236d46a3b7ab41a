// One string member of a line of JSON, found and decoded without a tree. A line that this cannot decide goes to
// JsonDocument, the reference, which also has the errors.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

// Sets `text` to the value of the member `key` of the JSON object `line`. False, with anything in `text`, if the line
// is no JSON object, has no such string, or has something rare: an escaped key, the key twice, a huge number. True only
// if JsonDocument with JsonRules::kLenient reads the same text.
bool read_json_text(std::string_view line, std::string_view key, std::string& text);

}  // namespace tokamak
