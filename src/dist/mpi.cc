// Comm over MPI, for host memory. Data moves as bytes, because MPI knows no bf16 and its own reductions promise no
// order of summation: reductions are an exchange of slices followed by our own sum, rank 0 first.
#include "dist/mpi.h"

// The C++ bindings were removed from the standard in MPI 3; their header does not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/parallel_for.h"

namespace tokamak {

namespace {

// Elements of scratch for one round of a reduction, over all ranks: 4 Mi f32 = 16 MiB.
constexpr int64_t kScratchElements = int64_t{4} << 20;
constexpr int64_t kSliceElements = Comm::kSliceAlignment / 2;  // of bf16, the narrowest

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(Kind::kComm, str(what, ": ", std::string(text, static_cast<size_t>(length))));
}

int to_int(int64_t count) {
  TOKAMAK_CHECK(0 <= count && count <= INT32_MAX, count);
  return static_cast<int>(count);
}

class MpiComm : public Comm {
 public:
  explicit MpiComm(MPI_Comm comm) : comm_(comm) {
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    check(MPI_Type_contiguous(kSliceAlignment, MPI_BYTE, &block_), "MPI_Type_contiguous");
    check(MPI_Type_commit(&block_), "MPI_Type_commit");
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  ~MpiComm() override {
    MPI_Type_free(&block_);
    if (comm_ != MPI_COMM_WORLD) MPI_Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_gather(Stream&, Tensor slice, Tensor full) override {
    TOKAMAK_CHECK(slice.dtype() == full.dtype() && slice.count() * size_ == full.count(), slice.text(), " to ",
                  full.text());
    const int blocks = to_int(blocks_of(slice));
    const auto* own = static_cast<const std::byte*>(full.data()) + rank_ * slice.bytes();
    const void* from = slice.data() == own ? MPI_IN_PLACE : slice.data();
    check(MPI_Allgather(from, blocks, block_, full.data(), blocks, block_, comm_), "MPI_Allgather");
  }

  void reduce_scatter(Stream&, Tensor full, Tensor slice, DType wire) override {
    TOKAMAK_CHECK(full.dtype() == DType::kF32 && slice.dtype() == DType::kF32 && slice.count() * size_ == full.count(),
                  full.text(), " to ", slice.text());
    TOKAMAK_CHECK(slice.count() % kSliceElements == 0, slice.text());
    if (wire == DType::kBF16) {
      reduce_scatter_as<bf16>(full, slice);
    } else {
      reduce_scatter_as<float>(full, slice);
    }
  }

  void all_reduce(Stream&, Tensor x) override {
    if (x.dtype() == DType::kF64) {
      all_reduce_as(x.as<double>(), x.count());
    } else {
      all_reduce_as(x.as<float>(), x.count());
    }
  }

  void barrier() override { check(MPI_Barrier(comm_), "MPI_Barrier"); }

  void broadcast(std::string& bytes, int root) override {
    int64_t length = static_cast<int64_t>(bytes.size());
    check(MPI_Bcast(&length, 1, MPI_INT64_T, root, comm_), "MPI_Bcast");
    bytes.resize(static_cast<size_t>(length));
    check(MPI_Bcast(bytes.data(), to_int(length), MPI_BYTE, root, comm_), "MPI_Bcast");
  }

  std::vector<std::string> gather_all(const std::string& bytes) override {
    const int length = to_int(static_cast<int64_t>(bytes.size()));
    std::vector<int> lengths(static_cast<size_t>(size_)), offsets(static_cast<size_t>(size_));
    check(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_), "MPI_Allgather");
    int64_t total = 0;
    for (size_t r = 0; r < lengths.size(); ++r) {
      offsets[r] = to_int(total);
      total += lengths[r];
    }
    std::string all(static_cast<size_t>(total), '\0');
    check(MPI_Allgatherv(bytes.data(), length, MPI_BYTE, all.data(), lengths.data(), offsets.data(), MPI_BYTE, comm_),
          "MPI_Allgatherv");
    std::vector<std::string> by_rank;
    for (size_t r = 0; r < lengths.size(); ++r) {
      by_rank.push_back(all.substr(static_cast<size_t>(offsets[r]), static_cast<size_t>(lengths[r])));
    }
    return by_rank;
  }

  int64_t max(int64_t value) override {
    int64_t result = 0;
    check(MPI_Allreduce(&value, &result, 1, MPI_INT64_T, MPI_MAX, comm_), "MPI_Allreduce");
    return result;
  }

  std::unique_ptr<Comm> split(int color) override {
    MPI_Comm part;
    check(MPI_Comm_split(comm_, color, rank_, &part), "MPI_Comm_split");
    return std::make_unique<MpiComm>(part);
  }

  void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  static int64_t blocks_of(Tensor tensor) {
    TOKAMAK_CHECK(tensor.bytes() % kSliceAlignment == 0, tensor.text(), " is no multiple of ", kSliceAlignment,
                  " bytes");
    return tensor.bytes() / kSliceAlignment;
  }

  // Rounds of at most kScratchElements: every rank sends each other rank its addends of that rank's slice, then sums.
  template <class Wire>
  void reduce_scatter_as(Tensor full, Tensor slice) {
    const int64_t length = slice.count();
    const int64_t longest = std::max(kScratchElements / size_ / kSliceElements, int64_t{1}) * kSliceElements;
    const float* addends = full.as<float>();
    float* sum = slice.as<float>();
    for (int64_t begin = 0; begin < length; begin += longest) {
      const int64_t piece = std::min(longest, length - begin);
      send_.resize(static_cast<size_t>(piece * size_ * static_cast<int64_t>(sizeof(Wire))));
      receive_.resize(send_.size());
      auto* send = reinterpret_cast<Wire*>(send_.data());
      const auto* received = reinterpret_cast<const Wire*>(receive_.data());
      for (int to = 0; to < size_; ++to) {
        parallel_for(piece, 16384, [&](int64_t first, int64_t last) {
          const float* from = addends + to * length + begin;
          for (int64_t i = first; i < last; ++i) send[to * piece + i] = from_float<Wire>(from[i]);
        });
      }
      const int blocks = to_int(piece * static_cast<int64_t>(sizeof(Wire)) / kSliceAlignment);
      check(MPI_Alltoall(send_.data(), blocks, block_, receive_.data(), blocks, block_, comm_), "MPI_Alltoall");
      parallel_for(piece, 16384, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          float total = 0;
          for (int from = 0; from < size_; ++from) total += to_float(received[from * piece + i]);
          sum[begin + i] = total;
        }
      });
    }
  }

  template <class T>
  void all_reduce_as(T* x, int64_t count) {
    std::vector<T> all(static_cast<size_t>(count * size_));
    const int bytes = to_int(count * static_cast<int64_t>(sizeof(T)));
    check(MPI_Allgather(x, bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, comm_), "MPI_Allgather");
    for (int64_t i = 0; i < count; ++i) {
      T total = 0;
      for (int from = 0; from < size_; ++from) total += all[static_cast<size_t>(from * count + i)];
      x[i] = total;
    }
  }

  MPI_Comm comm_;
  MPI_Datatype block_ = MPI_DATATYPE_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::vector<std::byte> send_;
  std::vector<std::byte> receive_;
};

}  // namespace

bool started_by_launcher() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr;
}

MpiWorld start_mpi() {
  int provided = 0;
  // The loader's thread never calls MPI.
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  MpiWorld world;
  world.comm = std::make_unique<MpiComm>(MPI_COMM_WORLD);
  MPI_Comm node;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  MPI_Comm_rank(node, &world.local_rank);
  MPI_Comm_size(node, &world.local_size);
  MPI_Comm_free(&node);
  return world;
}

void end_mpi() { MPI_Finalize(); }

}  // namespace tokamak
