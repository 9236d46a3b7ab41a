#include "interop/model_card.h"

#include <catch2/catch.hpp>

#include "base/file.h"
#include "support/temp_dir.h"

using namespace tokamak;

TEST_CASE("a model card's losses are the last that the run logged up to the checkpoint's step") {
  const TempDir dir;
  write_text_atomically(
      dir.file("m"),
      "{\"event\":\"start\",\"step\":0,\"time\":\"\",\"detail\":\"\"}\n"
      "{\"step\":10,\"loss/avg\":3.5}\n{\"step\":10,\"validation/loss\":3.25,\"validation/loss_ema\":3.0}\n"
      "{\"step\":20,\"loss/avg\":2.5}\n{\"step\":30,\"loss/avg\":null}\n"
      "{\"step\":40,\"loss/avg\":1.5}\n{\"step\":40,\"validation/loss\":1.25}\n",
      Kind::kBug);
  const RunRecord record = read_run_record(dir.file("m"), 30, "");
  CHECK(record.loss == 2.5);
  CHECK(record.validation_loss == 3.25);
  CHECK(read_run_record(dir.file("m"), 20, "").loss == 2.5);
  const RunRecord early = read_run_record(dir.file("m"), 9, "");
  CHECK((!early.loss && !early.validation_loss));
  CHECK(!read_run_record(dir.file("nowhere"), 30, "").loss);
  const RunRecord ema = read_run_record(dir.file("m"), 30, "ema"), none = read_run_record(dir.file("m"), 30, "none");
  CHECK((ema.validation_loss == 3.0 && !ema.loss));  // no step has a loss of an average
  CHECK((!none.validation_loss && !none.loss));
}
