// The lead of an article: a paragraph that sums it up, between the page's heading and the part that is marked as
// content.
#pragma once

#include <string>
#include <vector>

#include "data/web/content_marks.h"
#include "data/web/page.h"

namespace tokamak {

// The paragraphs of the lead of `content`, in order. `tree` is cleaned, but not yet pruned.
std::vector<std::string> lead_of(const PageTree& tree, NodeIndex content, ContentMarks& marks);

}  // namespace tokamak
