// One step of data preparation: it changes a document or drops it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "data/text/document.h"

namespace tokamak {

// The result depends on the document and the stage's options alone, never on other documents, so that threads may take
// documents in any order. Each thread has its own stages: a stage may hold a cache.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual bool run(Document& document) = 0;  // false: drops the document; an Error ends the work
};

using Stages = std::vector<std::unique_ptr<Stage>>;
using MakeStages = std::function<Stages()>;  // called once in each thread

}  // namespace tokamak
