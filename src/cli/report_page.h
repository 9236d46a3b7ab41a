// The page of one or several runs, as `tokamak report RUN... --output FILE` and the end of a sweep write it.
#pragma once

#include <string>
#include <vector>

namespace tokamak::cli {

// `directories`: different run.output_dirs, at least one. Replaces an older page.
void write_report_page(const std::vector<std::string>& directories, const std::string& output);

}  // namespace tokamak::cli
