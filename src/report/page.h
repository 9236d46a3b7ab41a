// Runs as one HTML page that needs no network and no other file. Its parts are in page/; dygraphs draws the charts.
#pragma once

#include <string>
#include <vector>

#include "report/page_run.h"

namespace tokamak {

struct PageOptions {
  std::string program;  // "tokamak 0.1.0"
};

// `runs`: at least one, with different names.
std::string page_of(const std::vector<PageRun>& runs, const PageOptions& options);

// The page's data, as JSON that is safe in a <script>.
std::string page_data(const std::vector<PageRun>& runs, const PageOptions& options);

}  // namespace tokamak
