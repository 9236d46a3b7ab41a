#include "formats/model_files.h"

#include <algorithm>

#include "base/printable.h"
#include "formats/safetensors_index.h"

namespace tokamak {

namespace {

// Python pickle files can run code when opened. They are never read; the error mentions them.
std::string pickle_in(const std::string& directory) {
  for (const std::string& name : list_directory(directory, Kind::kCheckpoint)) {
    const bool pickle = name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth");
    if (pickle && (starts_with(name, "pytorch_model") || starts_with(name, "consolidated"))) return name;
  }
  return "";
}

[[noreturn]] void fail_without_weights(const std::string& directory) {
  const std::string pickle = pickle_in(directory);
  if (!pickle.empty()) {
    fail(Kind::kCheckpoint,
         str(directory, " holds its weights as ", pickle, ", a Python pickle, which can run any code and is not read"),
         "convert it to safetensors: AutoModelForCausalLM.from_pretrained(DIR).save_pretrained(NEW_DIR)");
  }
  fail(Kind::kCheckpoint, str(directory, " has neither ", kModelFile, " nor ", kModelIndex),
       "give a directory as `save_pretrained` of transformers writes it");
}

}  // namespace

bool is_readable_as_float(const std::string& dtype) { return dtype == "F32" || dtype == "BF16" || dtype == "F16"; }

ModelFiles ModelFiles::open(const std::string& directory) {
  if (!is_directory(directory)) fail(Kind::kCheckpoint, directory + " is no directory");
  ModelFiles model;
  const auto open_file = [&](const std::string& name) -> const SafetensorsFile& {
    const auto found = model.files_.find(name);
    if (found != model.files_.end()) return found->second;
    return model.files_.emplace(name, SafetensorsFile(directory + "/" + name, Kind::kCheckpoint)).first->second;
  };

  const std::string single = directory + "/" + kModelFile;
  const std::string index_path = directory + "/" + kModelIndex;
  if (exists(single) && exists(index_path)) {
    fail(Kind::kCheckpoint, str(directory, " has both ", kModelFile, " and ", kModelIndex, "; which is the model?"),
         "remove the one that is left over");
  }
  if (exists(single)) {
    open_file(kModelFile);
  } else if (exists(index_path)) {
    const auto index = parse_index(read_text(index_path, Kind::kCheckpoint), index_path, Kind::kCheckpoint);
    for (const auto& [tensor, name] : index) {
      if (open_file(name).find(tensor) == nullptr) {
        fail(Kind::kCheckpoint, str(index_path, " says that tensor '", printable(tensor), "' is in ", printable(name),
                                    ", which has none"));
      }
    }
  } else {
    fail_without_weights(directory);
  }

  for (const auto& [name, file] : model.files_) {
    for (const SafetensorsEntry& entry : file.tensors()) {
      const auto [at, fresh] = model.tensors_.emplace(entry.name, Tensor{&entry, &file});
      if (!fresh) {
        fail(Kind::kCheckpoint,
             str("tensor '", printable(entry.name), "' is in both ", at->second.file->path(), " and ", file.path()));
      }
    }
  }
  return model;
}

void ModelFiles::read(std::string_view name, int64_t first, std::span<float> out) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail(Kind::kCheckpoint, str("the model has no tensor '", name, "'"));
  found->second.file->read_as_float(*found->second.entry, first, out);
}

}  // namespace tokamak
