// Uses yaml-cpp's events, not its nodes: only events show duplicate keys, places and further documents, and no alias is
// ever expanded.
#include "config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <sstream>
#include <utility>

#include "base/printable.h"

namespace tokamak {

namespace {

// Limits of a config, which may come from a foreign checkpoint. Each key is compared with those before it.
constexpr int64_t kMostNodes = 100000;
constexpr int64_t kMostKeys = 1000;  // of one mapping

// Builds nodes from the parser's events. `line_places`: a node's place is name:LINE, else `name` alone.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& name, bool line_places, std::vector<Problem>& problems)
      : name_(name), line_places_(line_places), problems_(problems) {}

  const ConfigNode& root() const { return root_; }
  int documents() const { return documents_; }
  std::string place(const YAML::Mark& mark) const { return line_places_ ? str(name_, ":", mark.line + 1) : name_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2) {
      problems_.push_back({place(mark), "the document has ended, and more text begins here",
                           "a config is one document: look for a stray bracket or a line ---"});
    }
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { add(leaf(mark, Type::kNull, "")); }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& value) override {
    add(leaf(mark, Type::kScalar, value));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    problems_.push_back({place(mark), "YAML aliases (*name) are not read", "${section.key} takes another key's value"});
    add(leaf(mark, Type::kScalar, ""));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    open_.push_back({leaf(mark, Type::kList, ""), std::nullopt});
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    open_.push_back({leaf(mark, Type::kMap, ""), std::nullopt});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  using Type = ConfigNode::Type;
  struct Open {
    ConfigNode node;
    std::optional<ConfigNode> key;  // of a map: a key whose value is not parsed yet
  };

  ConfigNode leaf(const YAML::Mark& mark, Type type, const std::string& text) {
    ConfigNode node;
    node.type = type;
    node.text = text;
    node.place = place(mark);
    if (++nodes_ > kMostNodes) fail(Kind::kConfig, str(node.place, ": a config has at most ", kMostNodes, " values"));
    return node;
  }

  void close() {
    ConfigNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  // Adds a finished node to the open list or map, or sets the root.
  void add(ConfigNode node) {
    if (open_.empty()) {
      if (documents_ <= 1) root_ = std::move(node);
    } else if (Open& parent = open_.back(); parent.node.type == Type::kList) {
      parent.node.children.push_back(std::move(node));
    } else if (!parent.key) {
      parent.key = std::move(node);
    } else {
      add_entry(parent, std::move(node));
    }
  }

  void add_entry(Open& map, ConfigNode value) {
    const ConfigNode key = *std::exchange(map.key, std::nullopt);
    if (key.type != Type::kScalar) {
      problems_.push_back(
          {key.place, str("a key of '", printable(open_path()), "' is ", key.shown(), ", not a word"), ""});
    } else if (const ConfigNode* first = map.node.child(key.text)) {
      problems_.push_back(
          {key.place,
           str("key '", printable(join_path(open_path(), key.text)), "' is given twice, first at ", first->place),
           "remove one of the two"});
    } else {
      if (std::ssize(map.node.children) >= kMostKeys) {
        fail(Kind::kConfig, str(key.place, ": '", printable(open_path()), "' has more than ", kMostKeys, " keys"));
      }
      value.key = key.text;
      value.place = key.place;
      map.node.children.push_back(std::move(value));
    }
  }

  std::string open_path() const {  // path of the innermost open node
    std::string path;
    for (const Open& open : open_) {
      if (&open == &open_.back()) break;
      path = open.node.type == Type::kList ? str(path, "[", open.node.children.size(), "]")
                                           : join_path(path, open.key ? open.key->text : "?");
    }
    return path;
  }

  const std::string& name_;
  bool line_places_;
  std::vector<Problem>& problems_;
  ConfigNode root_;
  std::vector<Open> open_;
  int documents_ = 0;
  int64_t nodes_ = 0;
};

// Reads one document and checks for another. (YAML::LoadAll does not terminate on some stray brackets.)
ConfigNode parse(const std::string& text, const std::string& name, bool line_places, std::vector<Problem>& problems) {
  TreeBuilder builder(name, line_places, problems);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& e) {
    fail(Kind::kConfig, str(builder.place(e.mark), ": not valid YAML: ", printable(e.msg, 160)),
         "keys of a section have the same indentation, in spaces; a space follows each colon");
  }
  ConfigNode root = builder.root();
  if (builder.documents() == 0) root.place = name;
  return root;
}

}  // namespace

ConfigNode parse_yaml(const std::string& text, const std::string& name, std::vector<Problem>& problems) {
  ConfigNode root = parse(text, name, true, problems);
  if (root.type == ConfigNode::Type::kNull) root.type = ConfigNode::Type::kMap;
  if (root.type != ConfigNode::Type::kMap) fail(Kind::kConfig, str(name, ": holds no sections but ", root.shown()));
  root.place = name;
  return root;
}

ConfigNode parse_yaml_value(const std::string& text, const std::string& place, std::vector<Problem>& problems) {
  return parse(text, place, false, problems);
}

}  // namespace tokamak
