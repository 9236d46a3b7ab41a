// Generates docs/config.md from the options' field lists.
#include "config/print.h"
#include "config/reference_rows.h"

namespace tokamak {

namespace {

constexpr const char* kIntroduction = R"(# Config reference

A run is one YAML file. This page is generated from the program's own list of options
(`tokamak train --config-reference > docs/config.md`); a test keeps it so.

- An unknown key, a key given twice and a value of the wrong type are errors that name file and line.
- `KEY=VALUE` after the file on the command line replaces a value: `optimizer.lr=3e-4`, `data.sources[0].weight=2`,
  `'data.sources=[{path: my/data}]'`. The value is YAML.
- `${section.key}` stands for another key's value, default or not; it is resolved after the overrides.
- *count*: `4096`, `1e6`, `64Ki`, `1.5M`, `250B`. K, M, B, T are powers of 1000; Ki, Mi, Gi, Ti of 1024.
- *number*: `0.1`, `3e-4`, `5%`.
- *length*: `2000` or `2000 steps`, `1B tokens`, `5%` of the run, `90min`, `2h`, `30s`; each key names its units.
- *time*: `90s`, `30min`, `3h50min`, `2d`, or `none`.
)";

}  // namespace

std::string config_reference() {
  std::string out = kIntroduction;
  RunConfig defaults;
  const auto section = [&](const char* name, auto& options, const std::string& help) {
    out += str("\n## ", name, "\n\n", help, ".\n\n", reference::kHead);
    using Section = std::remove_reference_t<decltype(options)>;
    if constexpr (kIsVector<Section>) {
      out += reference::rows(typename Section::value_type{}, "");
    } else {
      out += reference::rows(options, "");
    }
  };
  defaults.fields(section);
  return out;
}

}  // namespace tokamak
