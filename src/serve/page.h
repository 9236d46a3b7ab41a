// The built-in page: one HTML text with at most one <style> and one <script>, which alone the browser may run.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tokamak {

std::string page_html();
// Its Content-Security-Policy, which has the hashes of style and script, and what goes with it.
std::vector<std::pair<std::string, std::string>> page_headers();

}  // namespace tokamak
