// A run, or several side by side, as one HTML page that needs nothing else: no network, no other file. The page's parts
// are in page/; the charts are dygraphs'.
#pragma once

#include <string>
#include <vector>

#include "report/page_run.h"

namespace tokamak {

struct PageOptions {
  std::string program;  // that makes the page: "tokamak 0.1.0"
};

// `runs`: at least one; their names, which are to differ, are its title.
std::string page_of(const std::vector<PageRun>& runs, const PageOptions& options);

// What the page draws, as JSON that may stand in a <script>.
std::string page_data(const std::vector<PageRun>& runs, const PageOptions& options);

}  // namespace tokamak
