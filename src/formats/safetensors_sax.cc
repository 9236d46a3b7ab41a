#include "formats/safetensors_sax.h"

#include "base/printable.h"
#include "base/strings.h"

namespace tokamak {

bool SafetensorsSax::refuse(const std::string& what) {
  const bool in_tensor = expect_ >= Expect::kTensor && expect_ <= Expect::kOffset;
  error_ = in_tensor ? str("tensor '", printable(tensor().name), "': ", what) : what;
  return false;
}

bool SafetensorsSax::unexpected(const std::string& found) {
  switch (expect_) {
    case Expect::kHeader:
    case Expect::kName:
    case Expect::kEnd:
      return refuse("found " + found + " where a tensor's name is due");
    case Expect::kMetadata:
    case Expect::kMetadataKey:
    case Expect::kMetadataText:
      error_ = "'__metadata__' must be an object of strings, found " + found;
      return false;
    case Expect::kTensor:
    case Expect::kField:
      return refuse("must be an object of dtype, shape and data_offsets, found " + found);
    case Expect::kDtype:
      return refuse("dtype must be a string, found " + found);
    case Expect::kShape:
    case Expect::kShapeExtent:
      return refuse("shape must be a list of whole numbers from 0 to 2^63 - 1, found " + found);
    case Expect::kOffsets:
    case Expect::kOffset:
      return refuse("data_offsets must be two whole numbers from 0 to 2^63 - 1, found " + found);
  }
  return false;
}

bool SafetensorsSax::null() { return unexpected("null"); }
bool SafetensorsSax::boolean(bool) { return unexpected("true or false"); }
bool SafetensorsSax::number_integer(int64_t value) { return unexpected(str(value)); }
bool SafetensorsSax::number_float(double, const std::string& text) { return unexpected(printable(text)); }
bool SafetensorsSax::binary(binary_t&) { return unexpected("binary data"); }

bool SafetensorsSax::number_unsigned(uint64_t value) {
  if (value > static_cast<uint64_t>(INT64_MAX)) return unexpected(str(value));
  const auto number = static_cast<int64_t>(value);
  if (expect_ == Expect::kShapeExtent) {
    tensor().shape.push_back(number);
    return true;
  }
  if (expect_ == Expect::kOffset && offsets_ < 2) {
    (offsets_++ == 0 ? tensor().begin : tensor().end) = number;
    return true;
  }
  return unexpected(str(value));
}

bool SafetensorsSax::string(std::string& value) {
  if (expect_ == Expect::kMetadataText) {
    header_.metadata[metadata_key_] = value;
    expect_ = Expect::kMetadataKey;
    return true;
  }
  if (expect_ == Expect::kDtype) {
    tensor().dtype = value;
    expect_ = Expect::kField;
    return true;
  }
  return unexpected(str("'", printable(value), "'"));
}

bool SafetensorsSax::start_object(size_t) {
  if (expect_ == Expect::kHeader) {
    expect_ = Expect::kName;
  } else if (expect_ == Expect::kMetadata) {
    expect_ = Expect::kMetadataKey;
  } else if (expect_ == Expect::kTensor) {
    fields_.clear();
    expect_ = Expect::kField;
  } else {
    return unexpected("an object");
  }
  return true;
}

bool SafetensorsSax::key(std::string& name) {
  if (expect_ == Expect::kName) {
    if (!names_.insert(name).second) return refuse(str("'", printable(name), "' comes twice"));
    if (name == "__metadata__") {
      expect_ = Expect::kMetadata;
    } else {
      header_.tensors.emplace_back().name = name;
      expect_ = Expect::kTensor;
    }
    return true;
  }
  if (expect_ == Expect::kMetadataKey) {
    if (header_.metadata.count(name) > 0) {
      error_ = "'__metadata__' has '" + printable(name) + "' twice";
      return false;
    }
    metadata_key_ = name;
    expect_ = Expect::kMetadataText;
    return true;
  }
  if (!fields_.insert(name).second) return refuse(str("'", printable(name), "' comes twice"));
  if (name == "dtype") {
    expect_ = Expect::kDtype;
  } else if (name == "shape") {
    expect_ = Expect::kShape;
  } else if (name == "data_offsets") {
    expect_ = Expect::kOffsets;
  } else {
    return unexpected(str("'", printable(name), "'"));
  }
  return true;
}

bool SafetensorsSax::end_object() {
  if (expect_ == Expect::kField && fields_.size() < 3) return refuse("needs dtype, shape and data_offsets");
  expect_ = expect_ == Expect::kName ? Expect::kEnd : Expect::kName;
  return true;
}

bool SafetensorsSax::start_array(size_t) {
  if (expect_ == Expect::kShape) {
    expect_ = Expect::kShapeExtent;
  } else if (expect_ == Expect::kOffsets) {
    offsets_ = 0;
    expect_ = Expect::kOffset;
  } else {
    return unexpected("a list");
  }
  return true;
}

bool SafetensorsSax::end_array() {
  if (expect_ == Expect::kOffset && offsets_ != 2) return unexpected(str(offsets_, " of them"));
  expect_ = Expect::kField;
  return true;
}

bool SafetensorsSax::parse_error(size_t position, const std::string&, const nlohmann::json::exception& exception) {
  error_ = str("at byte ", position, ": ", printable(exception.what(), 160));
  return false;
}

}  // namespace tokamak
