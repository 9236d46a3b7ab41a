// CudaGemm by cuBLASLt. For each problem it asks the heuristic once, or times its candidates (gemm/tuning.h). Algorithm
// and descriptors are kept, so a later GEMM of the same shape is one call, with any alpha and beta. Sums are
// accumulated in f32 and rounded once, including the added operand.
//
// NVIDIA documents that cuBLAS gives the same bits in every run on GPUs of one architecture and SM count. Its exception
// for concurrent streams does not apply if the caller owns the workspace, as here.
//
// A bf16 output must be rounded once. On an H100, cuBLASLt 13.1.0 rounds the product before it adds a residual that is
// the output itself; ops.h forbids that. It also rounds the sum of a split K before it adds a bias. Two reduction
// schemes, in the output's type and in place, round partial sums. So a split K needs f32 partial sums with a separate
// reduction step, and is not allowed with a bias in bf16.
#include "cuda/gemm/gemm.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cuda/check.h"
#include "cuda/gemm/plan.h"
#include "cuda/gemm/tuning.h"

namespace tokamak {
namespace {

constexpr size_t kMaxPlans = 1024;  // a model has a few dozen problems; beyond this the map is cleared

cudaDataType_t type_of(DType dtype) { return by_act_type(dtype, CUDA_R_32F, CUDA_R_16BF); }

void describe(cublasLtMatrixLayoutOpaque_t& layout, DType dtype, const GemmProblem::Stored& stored) {
  TOKAMAK_CUBLAS(cublasLtMatrixLayoutInit(&layout, type_of(dtype), static_cast<uint64_t>(stored.rows),
                                          static_cast<uint64_t>(stored.columns), stored.rows));
}

// SM count for the choice of algorithms; 0: all. NCCL's blocks occupy SMs while a GEMM runs. A GEMM that fills every SM
// in one wave would then need a second wave.
int sm_target(const RuntimeOptions& options) {
  if (options.nccl_max_ctas == 0) return 0;
  int device = 0;
  cudaDeviceProp properties;
  TOKAMAK_CUDA(cudaGetDevice(&device));
  TOKAMAK_CUDA(cudaGetDeviceProperties(&properties, device));
  return static_cast<int>(std::max<int64_t>(properties.multiProcessorCount - options.nccl_max_ctas, 1));
}

void describe(Plan& plan, const GemmProblem& problem, bool tf32, int sms) {
  const bool fast = tf32 && problem.in == DType::kF32;
  TOKAMAK_CUBLAS(
      cublasLtMatmulDescInit(&plan.product, fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasOperation_t left = problem.transpose_left ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t right = problem.transpose_right ? CUBLAS_OP_T : CUBLAS_OP_N;
  TOKAMAK_CUBLAS(cublasLtMatmulDescSetAttribute(&plan.product, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof(left)));
  TOKAMAK_CUBLAS(cublasLtMatmulDescSetAttribute(&plan.product, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof(right)));
  if (sms > 0) {
    TOKAMAK_CUBLAS(
        cublasLtMatmulDescSetAttribute(&plan.product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &sms, sizeof(sms)));
  }
  if (problem.bias) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    TOKAMAK_CUBLAS(
        cublasLtMatmulDescSetAttribute(&plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
  }
  describe(plan.left, problem.in, problem.left());
  describe(plan.right, problem.in, problem.right());
  describe(plan.output, problem.out, problem.output());
}

// The address is part of the descriptor but not of the problem, so each GEMM sets it.
void point_to_bias(Plan& plan, const GemmOperands& operands) {
  if (operands.bias == nullptr) return;
  TOKAMAK_CUBLAS(cublasLtMatmulDescSetAttribute(&plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &operands.bias,
                                                sizeof(operands.bias)));
}

template <class T>
void prefer(cublasLtMatmulPreferenceOpaque_t& preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  TOKAMAK_CUBLAS(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)));
}

// The heuristic's `most` best algorithms for the plan's GEMM, best first; may be empty.
std::vector<cublasLtMatmulAlgo_t> candidates(cublasLtHandle_t handle, const GemmProblem& problem, Plan& plan,
                                             int most) {
  cublasLtMatmulPreferenceOpaque_t preference;
  TOKAMAK_CUBLAS(cublasLtMatmulPreferenceInit(&preference));
  prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(CudaGemm::kWorkspaceBytes));
  prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(problem.bias && problem.out == DType::kBF16 ? CUBLASLT_REDUCTION_SCHEME_NONE
                                                                           : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem.left_alignment);
  prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem.right_alignment);
  prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem.added_alignment);
  prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem.output_alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, &plan.product, &plan.left, &plan.right, &plan.output, &plan.output,
                                     &preference, most, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  TOKAMAK_CUBLAS(status);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const auto& result : std::span(results).first(static_cast<size_t>(found))) {
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  }
  return algorithms;
}

std::string text_of(const Tensor& x, Transpose transpose) {
  return x.text() + (transpose == Transpose::kYes ? " transposed" : "");
}

// K = 0: c is the added operand, or zero.
void add_to_nothing(cudaStream_t stream, const GemmOperands& operands, int64_t bytes) {
  const auto count = static_cast<size_t>(bytes);
  if (operands.beta == 0) {
    TOKAMAK_CUDA(cudaMemsetAsync(operands.output, 0, count, stream));
  } else if (operands.added != operands.output) {
    TOKAMAK_CUDA(cudaMemcpyAsync(operands.output, operands.added, count, cudaMemcpyDeviceToDevice, stream));
  }
}

}  // namespace

void cublas_failed(cublasStatus_t status, const char* call, const char* file, int line) {
  fail(status == CUBLAS_STATUS_ALLOC_FAILED ? Kind::kDevice : Kind::kDeviceFault,
       str("cuBLASLt: ", cublasLtGetStatusString(status), " (", cublasLtGetStatusName(status), ") from ", call, " at ",
           file, ":", line),
       "CUBLASLT_LOG_LEVEL=2 makes cuBLASLt say more; an error of execution may have its cause in an earlier kernel");
}

cublasStatus_t run_plan(cublasLtHandle_t handle, Plan& plan, const cublasLtMatmulAlgo_t& algorithm,
                        const GemmOperands& operands, std::byte* workspace, cudaStream_t stream) {
  point_to_bias(plan, operands);
  return cublasLtMatmul(handle, &plan.product, &operands.alpha, operands.left, &plan.left, operands.right, &plan.right,
                        &operands.beta, operands.added, &plan.output, operands.output, &plan.output, &algorithm,
                        workspace, static_cast<size_t>(CudaGemm::kWorkspaceBytes), stream);
}

std::string text_of(const GemmProblem& p) {
  return str(p.m, " ", p.n, " ", p.k, " ", p.transpose_left ? "T" : "N", p.transpose_right ? "T" : "N", " ",
             name_of(p.in), " ", name_of(p.out), " ", p.left_alignment, " ", p.right_alignment, " ", p.added_alignment,
             " ", p.output_alignment, p.bias ? " bias" : "");
}

std::string text_of(const cublasLtMatmulAlgo_t& algorithm) {
  const auto of = [&](cublasLtMatmulAlgoConfigAttributes_t attribute, auto value) {
    size_t size = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &size);
    return status == CUBLAS_STATUS_SUCCESS ? str(value) : "?";
  };
  return str("id ", of(CUBLASLT_ALGO_CONFIG_ID, int32_t{}), ", tile ", of(CUBLASLT_ALGO_CONFIG_TILE_ID, uint32_t{}),
             ", stages ", of(CUBLASLT_ALGO_CONFIG_STAGES_ID, uint32_t{}), ", cluster ",
             of(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, uint16_t{}), ", split-K ",
             of(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, int32_t{}), ", reduction ",
             of(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, uint32_t{}));
}

struct CudaGemm::Impl {
  explicit Impl(const RuntimeOptions& options) : tf32(options.tf32), sms(sm_target(options)) {
    TOKAMAK_CUBLAS(cublasLtCreate(&handle));
    if (options.autotunes()) tuning.emplace(options);
  }
  ~Impl() { cublasLtDestroy(handle); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Plan& plan(const Gemm& args, const GemmOperands& operands, std::byte* workspace, cudaStream_t stream) {
    const GemmProblem problem = gemm_problem(args);
    if (const auto known = plans.find(problem); known != plans.end()) return *known->second;
    auto made = std::make_unique<Plan>();
    describe(*made, problem, tf32, sms);
    point_to_bias(*made, operands);
    const bool tuned = tuning && problem.choice == AlgorithmChoice::kTuned;
    const auto algorithms = candidates(handle, problem, *made, tuned ? GemmTuning::kCandidates : 1);
    if (algorithms.empty()) {
      fail(Kind::kDeviceFault, str("cuBLASLt has no algorithm for ", text_of(args.a, args.trans_a), " times ",
                                   text_of(args.b, args.trans_b), " to ", args.c.text()));
    }
    made->algorithm = algorithms.front();
    if (tuned) {
      made->algorithm = tuning->fastest(
          problem, algorithms, args.c.bytes(), operands,
          [&](const cublasLtMatmulAlgo_t& algorithm, const GemmOperands& timed) {
            return run_plan(handle, *made, algorithm, timed, workspace, stream);
          },
          stream);
    } else {
      log::info("GEMM ", text_of(problem), ": the heuristic's algorithm, ", text_of(made->algorithm));
    }
    if (plans.size() >= kMaxPlans) plans.clear();  // enqueued work has its own copies
    return *plans.emplace(problem, std::move(made)).first->second;
  }

  const bool tf32;
  const int sms;
  cublasLtHandle_t handle = nullptr;
  std::optional<GemmTuning> tuning;  // absent: use the heuristic's first choice
  std::map<GemmProblem, std::unique_ptr<Plan>> plans;
};

CudaGemm::CudaGemm(const RuntimeOptions& options) : impl_(std::make_unique<Impl>(options)) {}

CudaGemm::~CudaGemm() = default;

void CudaGemm::run(cudaStream_t stream, const Gemm& args, std::byte* workspace) {
  if (args.c.count() == 0) return;
  const GemmOperands operands = gemm_operands(args);
  if (args.a.count() == 0) return add_to_nothing(stream, operands, args.c.bytes());
  Plan& plan = impl_->plan(args, operands, workspace, stream);
  TOKAMAK_CUBLAS(run_plan(impl_->handle, plan, plan.algorithm, operands, workspace, stream));
}

}  // namespace tokamak
