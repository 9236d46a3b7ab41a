// Event-based (SAX) parser of a safetensors header. The schema is fixed and three levels deep, so anything else is
// refused where it begins, and hostile nesting or size costs nothing. Private to safetensors_header.cc.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "formats/safetensors_header.h"

namespace tokamak {

class SafetensorsSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit SafetensorsSax(SafetensorsHeader& header) : header_(header) {}

  const std::string& error() const { return error_; }

  bool null() override;
  bool boolean(bool value) override;
  bool number_integer(int64_t value) override;
  bool number_unsigned(uint64_t value) override;
  bool number_float(double value, const std::string& text) override;
  bool string(std::string& value) override;
  bool binary(binary_t& value) override;
  bool start_object(size_t) override;
  bool key(std::string& name) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string& token, const nlohmann::json::exception& exception) override;

 private:
  // The only events that may come next.
  enum class Expect {
    kHeader,        // {
    kName,          // a tensor, "__metadata__" or }
    kMetadata,      // {
    kMetadataKey,   // a key or }
    kMetadataText,  // a string
    kTensor,        // {
    kField,         // dtype, shape, data_offsets or }
    kDtype,         // a string
    kShape,         // [
    kShapeExtent,   // a number or ]
    kOffsets,       // [
    kOffset,        // a number or ]
    kEnd,
  };

  bool refuse(const std::string& what);
  bool unexpected(const std::string& found);
  SafetensorsEntry& tensor() { return header_.tensors.back(); }

  SafetensorsHeader& header_;
  Expect expect_ = Expect::kHeader;
  std::set<std::string> names_;   // of tensors, and "__metadata__"
  std::set<std::string> fields_;  // of the tensor that is being read
  std::string metadata_key_;
  int offsets_ = 0;
  std::string error_;
};

}  // namespace tokamak
