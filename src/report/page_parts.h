// The files that make up a page. The build embeds them in the program (embed.cmake).
#pragma once

#include <string_view>

namespace tokamak::page_parts {

std::string_view page_html();  // with {{NAME}} for each part
std::string_view page_css();
std::string_view page_js();

std::string_view dygraphs_css();
std::string_view dygraphs_js();
std::string_view dygraphs_synchronizer();  // zooms several charts at once
std::string_view dygraphs_licence();

}  // namespace tokamak::page_parts
