// The file page/page.html as text (embed.cmake writes the source).
#pragma once

#include <string_view>

namespace tokamak::page_text {

std::string_view html();

}  // namespace tokamak::page_text
