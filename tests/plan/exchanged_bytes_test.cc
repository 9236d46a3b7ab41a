// Compares the communicated bytes of the step record with those passed to MPI. This program's MPI_Allgather,
// MPI_Iallgather, MPI_Ialltoall and MPI_Isend wrap the library's and count (MPI's profiling interface).
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>
#include <catch2/catch.hpp>

#include "plan/dry_run.h"
#include "plan/small_run.h"
#include "support/ranks.h"

namespace {

// Bytes that this process has sent to other ranks.
std::atomic<double> sent = 0;

void count(int elements, MPI_Datatype type, int peers) {
  int size = 0;
  MPI_Type_size(type, &size);
  sent += static_cast<double>(elements) * size * peers;
}

void count_for_all(int elements, MPI_Datatype type, MPI_Comm comm) {
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  count(elements, type, ranks - 1);
}

}  // namespace

extern "C" {

int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                  MPI_Datatype receive_type, MPI_Comm comm) {
  count_for_all(receive_count, receive_type, comm);
  return PMPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type, comm);
}

int MPI_Iallgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                   MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  count_for_all(receive_count, receive_type, comm);
  return PMPI_Iallgather(send, send_count, send_type, receive, receive_count, receive_type, comm, request);
}

int MPI_Ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                  MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  count_for_all(send_count, send_type, comm);
  return PMPI_Ialltoall(send, send_count, send_type, receive, receive_count, receive_type, comm, request);
}

int MPI_Isend(const void* send, int send_count, MPI_Datatype send_type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  count(send_count, send_type, 1);
  return PMPI_Isend(send, send_count, send_type, to, tag, comm, request);
}

}  // extern "C"

using namespace tokamak;

RANKS_CASE("a recorded step exchanges the bytes that MPI sends") {
  const int ranks = world.size();
  const int replicas = ranks % 2 == 0 ? 2 : 1;
  for (const auto& [reduce, sharing] : std::vector<std::pair<Precision, ParallelismOptions>>{
           {Precision::kF32, {}},
           {Precision::kBF16, {}},
           {Precision::kF32, {.zero_stage = 1}},
           {Precision::kF32, {.zero_stage = 2}},
           {Precision::kBF16, {.data_parallel_replicate_degree = replicas}},
           {Precision::kF32, {.data_parallel_replicate_degree = ranks, .reduce = ReduceWhen::kLastMicrobatch}}}) {
    RunConfig config = small_run();
    config.precision.reduce = reduce;
    config.parallelism = sharing;
    const GlobalBatch batch = small_batch(ranks, 5);
    DryRun dry(config, batch, ranks);
    const StepRecord record = dry.record();

    Backend backend = make_cpu_backend();
    const MeshGroups groups(world.comm(), replicas_of(sharing, ranks));
    PlannedRun run = plan_run(config, batch, groups.mesh(), backend, PlanFor::kTraining, INT64_MAX);
    run.engine->commit();
    run.engine->parameters().initialize(1, run.engine->compute());
    // When a step ends, gathers for the next step are still running.
    const auto step = [&] {
      record_step(*run.engine, run.shape, {.before = 0});
      run.engine->parameters().wait_gathered(run.engine->compute());
    };
    step();
    sent = 0;
    step();
    CHECK(sent > 0);
    CHECK(record.exchanged() == sent);
  }
}

RANKS_CASE("a recorded exchange has the bytes that MPI sends, and those that it receives") {
  Comm& comm = world.comm();
  const Backend backend = make_cpu_backend();
  const auto stream = backend.device->make_stream();
  std::vector<float> out(100), in(100 * static_cast<size_t>(comm.size()));
  std::vector<Comm::Transfer> sends, receives;
  double received = 0;
  for (int r = 0; r < comm.size(); ++r) {  // every rank sends r + 1 numbers to rank r, also rank r itself
    sends.push_back({r, Tensor(out.data(), DType::kF32, Shape{r + 1})});
    receives.push_back({r, Tensor(&in[100 * static_cast<size_t>(r)], DType::kF32, Shape{comm.rank() + 1})});
    received += r == comm.rank() ? 0 : 4 * (comm.rank() + 1);
  }
  StepRecorder recorder;
  const Observation watched(*backend.device, recorder);
  sent = 0;
  comm.exchange(*stream, sends, receives);
  stream->synchronize();
  CHECK(sent > 0);
  CHECK(recorder.record().exchanged() == sent);
  CHECK(recorder.record().calls.front().received == received);
}
