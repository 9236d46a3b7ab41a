// ${section.key}: another key's value.
#include <algorithm>

#include "base/printable.h"
#include "config/config_tree.h"

namespace tokamak {

namespace {

// Limits of all copies by references, and of references in a row. Real configs copy a few dozen values.
constexpr int64_t kMostValues = 10000;
constexpr int64_t kMostText = 1 << 20;  // bytes
constexpr size_t kLongestTrail = 100;   // keys
constexpr size_t kMostProblems = 100;   // after which the search ends

class Resolver {
 public:
  Resolver(ConfigNode& root, std::vector<Problem>& problems) : root_(root), problems_(problems) {}

  // `trail`: the chain of references so far, outermost first; a reference to one of these keys is a cycle.
  bool resolve(ConfigNode& node, const std::string& path, std::vector<std::string> trail) {
    if (spent_) return false;
    trail.push_back(path);
    if (node.type == ConfigNode::Type::kScalar) return resolve_scalar(node, trail);
    bool all = true;
    for (size_t i = 0; i < node.children.size(); ++i) {
      ConfigNode& child = node.children[i];
      const bool in_list = node.type == ConfigNode::Type::kList;
      all = resolve(child, in_list ? str(path, "[", i, "]") : join_path(path, child.key), trail) && all;
    }
    return all;
  }

 private:
  bool resolve_scalar(ConfigNode& node, const std::vector<std::string>& trail) {
    std::string text;  // the resolved part so far
    size_t at = 0;     // position in the node's text from which it is not resolved yet
    size_t begin = node.text.find("${");
    while (begin != std::string::npos) {
      const size_t end = node.text.find('}', begin);
      if (end == std::string::npos) return report(node, trail, "has '${' without '}'", "");
      ConfigNode target;
      if (!fetch(node, node.text.substr(begin + 2, end - begin - 2), trail, target)) return false;
      const bool whole = begin == 0 && end + 1 == node.text.size();
      if (whole) {
        node.type = target.type;
        node.text = target.text;
        node.children = target.children;
        return true;
      }
      if (target.type != ConfigNode::Type::kScalar) {
        return report(node, trail, str("puts ", target.shown(), " into text"),
                      "only single values can be part of text");
      }
      text.append(node.text, at, begin - at).append(target.text);
      text_ += std::ssize(target.text);  // resolved; the next reference finds the budget spent
      at = end + 1;
      begin = node.text.find("${", at);
    }
    if (at > 0) node.text = text.append(node.text, at);
    return true;
  }

  // Whether the budget has room for another copy of `target`.
  bool afford(const ConfigNode& target) {
    ++values_;
    text_ += std::ssize(target.text);
    bool enough = values_ <= kMostValues && text_ <= kMostText;
    for (size_t i = 0; enough && i < target.children.size(); ++i) enough = afford(target.children[i]);
    return enough;
  }

  // A resolved copy of the reference's target.
  bool fetch(const ConfigNode& node, const std::string& reference, const std::vector<std::string>& trail,
             ConfigNode& target) {
    const std::vector<PathStep> path = parse_path(reference);
    const std::string key = printed_path(path);
    const auto seen = std::find(trail.begin(), trail.end(), key);
    if (!path.empty() && seen != trail.end()) {
      return report(node, trail,
                    str("refers to itself: ", printable(str(join({seen, trail.end()}, " -> "), " -> ", key), 160)), "");
    }
    const ConfigNode* found = path.empty() ? nullptr : find_node(root_, path);
    if (found == nullptr)
      return report(node, trail, str("refers to '", printable(reference), "', which is not a key"), near(path));
    if (trail.size() >= kLongestTrail || !afford(*found)) {
      spent_ = true;
      return report(node, trail,
                    str("refers to more than ", kMostValues, " values, ", kMostText, " characters or ", kLongestTrail,
                        " keys in a row, with all references before it"),
                    "");
    }
    target = *found;
    return resolve(target, key, trail);
  }

  std::string near(std::vector<PathStep> path) {
    if (path.empty()) return "a reference is ${section.key}";
    const std::string word = path.back().key;
    path.pop_back();
    const ConfigNode* parent = find_node(root_, path);
    std::vector<std::string> known;
    if (parent != nullptr) {
      for (const ConfigNode& child : parent->children) known.push_back(child.key);
    }
    const std::string best = nearest(word, known);
    return best.empty() ? "" : str("did you mean '", best, "'?");
  }

  // Reports the key at the end of the trail, once. A default has no place; the referring key's is used.
  bool report(const ConfigNode& node, const std::vector<std::string>& trail, const std::string& rule,
              const std::string& hint) {
    Problem problem{node.place, str("key '", printable(trail.back()), "' (value ", node.shown(), ") ", rule), hint};
    for (auto key = trail.rbegin(); problem.place.empty() && key != trail.rend(); ++key) {
      problem.place = nearest_place(root_, *key, "");
    }
    const bool known = std::any_of(problems_.begin(), problems_.end(), [&](const Problem& p) {
      return p.place == problem.place && p.what == problem.what;
    });
    if (!known) problems_.push_back(problem);
    spent_ = spent_ || problems_.size() >= kMostProblems;
    return false;
  }

  ConfigNode& root_;
  std::vector<Problem>& problems_;
  int64_t values_ = 0;  // copied so far
  int64_t text_ = 0;
  bool spent_ = false;  // the budget, or kMostProblems, is used up: stop resolving
};

}  // namespace

void resolve_references(ConfigNode& root, std::vector<Problem>& problems) {
  Resolver(root, problems).resolve(root, "", {});
}

}  // namespace tokamak
