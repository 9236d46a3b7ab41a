#include "config/bind.h"

#include "base/printable.h"

namespace tokamak {

namespace {

// Keys of earlier versions, with what to write instead.
struct RemovedKey {
  const char* key;
  const char* hint;
};
constexpr RemovedKey kRemovedKeys[] = {
    {"activation_checkpoint.kept_layers",
     "leave it out: activation_checkpoint.mode: auto chooses them, and selective keeps what kept_bytes allows"},
    {"parallelism.data_parallel_shard_degree",
     "leave it out: each copy has ranks / parallelism.data_parallel_replicate_degree ranks"},
    {"metrics.jsonl", "leave it out: a run always writes metrics.jsonl"},
    {"metrics.mfu", "leave it out: the log has MFU on GPUs, and tokens/s everywhere"},
    {"runtime.ranks_per_gpu", "set the environment variable TOKAMAK_RANKS_PER_GPU, for tests only"},
};

const RemovedKey* find_removed(const std::string& key) {
  const auto found = std::find_if(std::begin(kRemovedKeys), std::end(kRemovedKeys),
                                  [&](const RemovedKey& one) { return one.key == key; });
  return found == std::end(kRemovedKeys) ? nullptr : &*found;
}

// Lists only a few names, because a problem and its hint share a line.
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 6;
  if (names.size() <= kMost) return join(names, ", ");
  return str(join({names.begin(), names.begin() + kMost}, ", "), ", ... (docs/config.md has all ", names.size(), ")");
}

}  // namespace

bool Binder::is_map(const ConfigNode& node, const std::string& path) {
  if (node.type == ConfigNode::Type::kMap) return true;
  report(node, path, "must be a mapping of keys to values");
  return false;
}

bool Binder::is_list(const ConfigNode& node, const std::string& path) {
  if (node.type == ConfigNode::Type::kList) return true;
  report(node, path, "must be a list", "for example [a, b], or lines that begin with '- '");
  return false;
}

bool Binder::is_scalar(const ConfigNode& node, const std::string& path) {
  if (node.type == ConfigNode::Type::kScalar) return true;
  if (node.type == ConfigNode::Type::kNull) {
    problems_.push_back(
        {node.place, str("key '", printable(path), "' has no value"), "give it one, or remove the key"});
  } else {
    report(node, path, "must be a single value");
  }
  return false;
}

void Binder::take_unknown(ConfigNode& node, const std::string& path, const ConfigNode& defaults) {
  if (node.type != ConfigNode::Type::kMap || defaults.type != ConfigNode::Type::kMap) return;
  std::vector<std::string> known;
  for (const ConfigNode& child : defaults.children) known.push_back(child.key);
  std::erase_if(node.children, [&](ConfigNode& child) {
    const auto found = std::find(known.begin(), known.end(), child.key);
    if (found == known.end()) {
      const bool is_removed = find_removed(join_path(path, child.key)) != nullptr;
      if (!is_removed || removed_keys_ == RemovedKeys::kRefuse) report_unknown(child, path, known);
      return true;
    }
    take_unknown(child, join_path(path, child.key), defaults.children[found - known.begin()]);
    return false;
  });
}

void Binder::report(const ConfigNode& node, const std::string& path, const std::string& rule, const std::string& hint) {
  problems_.push_back({node.place, str("key '", printable(path), "' (value ", node.shown(), ") ", rule), hint});
}

std::string Binder::kind_named_by(const ConfigNode& node) {
  if (node.type == ConfigNode::Type::kScalar) return node.text;
  return node.type == ConfigNode::Type::kMap && node.children.size() == 1 ? node.children.front().key : "";
}

void Binder::report_choice(const ConfigNode& node, const std::string& path, const std::string& given,
                           const std::vector<std::string>& names) {
  const std::string near = nearest(given, names);
  report(node, path, "must be one of " + join(names, ", "), near.empty() ? "" : str("did you mean '", near, "'?"));
}

void Binder::report_unknown(const ConfigNode& node, const std::string& section, const std::vector<std::string>& known) {
  const std::string key = join_path(section, node.key);
  std::string fault = "is unknown", hint;
  if (const RemovedKey* removed = find_removed(key)) {
    fault = "no longer exists";
    hint = removed->hint;
  } else if (const std::string near = nearest(node.key, known); !near.empty()) {
    hint = str("did you mean '", near, "'?");
  } else {
    const auto elsewhere = std::find_if(all_keys_.begin(), all_keys_.end(),
                                        [&](const std::string& other) { return other.ends_with("." + node.key); });
    hint = elsewhere != all_keys_.end() ? str("did you mean '", *elsewhere, "'?")
           : section.empty()            ? str("the sections are ", listed(known))
                                        : str("the keys of '", section, "' are ", listed(known));
  }
  report(node, key, fault, hint);
}

}  // namespace tokamak
