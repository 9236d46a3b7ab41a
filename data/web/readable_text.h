// The text around the paragraphs of a page that look most like an article, by Readability's scores (Arc90, 2010). Long
// paragraphs with commas speak for the elements around them, and links speak against them.
#pragma once

#include <string>

#include "data/web/content_marks.h"
#include "data/web/page.h"

namespace tokamak {

std::string readable_text(PageTree tree, ContentMarks& marks);

}  // namespace tokamak
