// Newton-Schulz against plain loops in float64, and its map of singular values. The cases run on the CPU and, by
// tests/cuda, on the emulator.
#include "optim/newton_schulz.h"

#include <array>
#include <variant>

#include "backend/observer.h"
#include "backend/support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr auto kJordan = NewtonSchulzCoefficients::kJordan, kPolarExpress = NewtonSchulzCoefficients::kPolarExpress;

// The sources' numbers again: KellerJordan/Muon muon.py, and karpathy/nanochat nanochat/optim.py.
std::vector<std::array<double, 3>> rows_of(NewtonSchulzCoefficients coefficients) {
  if (coefficients == kJordan) return std::vector<std::array<double, 3>>(5, {3.4445, -4.7750, 2.0315});
  return {{8.156554524902461, -22.48329292557795, 15.878769915207462},
          {4.042929935166739, -2.808917465908714, 0.5000178451051316},
          {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
          {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
          {2.3465413258596377, -1.7097828382687081, 0.42323551169305323}};
}
double margin_of(NewtonSchulzCoefficients coefficients) { return coefficients == kJordan ? 1 : 1.01; }

struct Matrix {
  Matrix(int64_t of_rows, int64_t of_columns)
      : rows(of_rows), columns(of_columns), values(static_cast<size_t>(of_rows * of_columns)) {}
  Matrix(const HostTensor& x) : rows(x.shape()[0]), columns(x.shape()[1]), values(x.values()) {}
  double& at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
  double at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * columns + j)]; }

  int64_t rows, columns;
  Values values;
};

Matrix transposed(const Matrix& x) {
  Matrix out(x.columns, x.rows);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.columns; ++j) out.at(j, i) = x.at(i, j);
  }
  return out;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix out(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t j = 0; j < b.columns; ++j) out.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return out;
}

// alpha a + beta b
Matrix sum(double alpha, const Matrix& a, double beta, const Matrix& b) {
  Matrix out = a;
  for (size_t i = 0; i < out.values.size(); ++i) out.values[i] = alpha * a.values[i] + beta * b.values[i];
  return out;
}

double norm_of(const Matrix& x) { return std::sqrt(dot(x.values, x.values)); }

// By the first line of the formula alone: a tall matrix is transposed.
Matrix orthogonalised64(const Matrix& matrix, NewtonSchulzCoefficients coefficients) {
  const bool tall = matrix.rows > matrix.columns;
  Matrix x = tall ? transposed(matrix) : matrix;
  x = sum(1 / std::max(margin_of(coefficients) * norm_of(x), 1e-7), x, 0, x);
  for (const auto& [a, b, c] : rows_of(coefficients)) {
    const Matrix gram = product(x, transposed(x));
    x = sum(a, x, 1, product(sum(b, gram, c, product(gram, gram)), x));
  }
  return tall ? transposed(x) : x;
}

// Random columns, made orthonormal by Gram and Schmidt's method, twice.
Matrix orthonormal(int64_t rows, int64_t columns, const char* name) {
  Matrix x = transposed(random_tensor(DType::kF64, {rows, columns}, name));
  for (int round = 0; round < 2; ++round) {
    for (int64_t i = 0; i < columns; ++i) {
      for (int64_t before = 0; before <= i; ++before) {
        double overlap = 0;
        for (int64_t j = 0; j < rows; ++j) overlap += x.at(i, j) * x.at(before, j);
        for (int64_t j = 0; j < rows; ++j) {
          if (before < i) x.at(i, j) -= overlap * x.at(before, j);
          if (before == i) x.at(i, j) /= std::sqrt(overlap);
        }
      }
    }
  }
  return transposed(x);
}

// Singular values from 3 to 3 / condition, at equal ratios.
HostTensor with_condition(DType dtype, int64_t rows, int64_t columns, double condition) {
  const int64_t count = std::min(rows, columns);
  Matrix left = orthonormal(rows, count, "left");
  const Matrix right = orthonormal(columns, count, "right");
  for (int64_t k = 0; k < count; ++k) {
    const double s = 3 * std::pow(condition, -static_cast<double>(k) / std::max(1.0, static_cast<double>(count - 1)));
    for (int64_t i = 0; i < rows; ++i) left.at(i, k) *= s;
  }
  return HostTensor(dtype, {rows, columns}, product(left, transposed(right)).values);
}

// The operands of a call on a copy of x.
struct Buffers {
  explicit Buffers(const HostTensor& matrix)
      : x(matrix),
        other(random_tensor(matrix.dtype(), matrix.shape(), "rubbish")),
        gram(random_tensor(matrix.dtype(), gram_shape(matrix.shape()), "rubbish")),
        polynomial(gram),
        norm(DType::kF64, {1}) {}

  Matrix orthogonalised(NewtonSchulzCoefficients coefficients) {
    TestBackend backend;
    const Tensor result = orthogonalise(
        backend.ops(), *backend.stream,
        {.x = x, .other = other, .gram = gram, .polynomial = polynomial, .norm = norm, .coefficients = coefficients});
    return HostTensor::copy_of(result);
  }

  HostTensor x, other, gram, polynomial, norm;
};

double apart(const Matrix& actual, const Matrix& expected) {
  return norm_of(sum(1, actual, -1, expected)) / norm_of(expected);
}

// Singular values and vectors by Hestenes's one-sided rotations: columns of `left` become orthogonal.
struct Svd {
  explicit Svd(const Matrix& x) : left(x), right(x.columns, x.columns) {
    for (int64_t i = 0; i < x.columns; ++i) right.at(i, i) = 1;
    for (int sweep = 0; sweep < 20; ++sweep) {
      for (int64_t p = 0; p < x.columns; ++p) {
        for (int64_t q = p + 1; q < x.columns; ++q) rotate(p, q);
      }
    }
    for (int64_t k = 0; k < x.columns; ++k) {
      double square = 0;
      for (int64_t i = 0; i < x.rows; ++i) square += left.at(i, k) * left.at(i, k);
      values.push_back(std::sqrt(square));
      for (int64_t i = 0; i < x.rows; ++i) left.at(i, k) /= values.back();
    }
  }
  void rotate(int64_t p, int64_t q) {
    double pp = 0, qq = 0, pq = 0;
    for (int64_t i = 0; i < left.rows; ++i) {
      pp += left.at(i, p) * left.at(i, p);
      qq += left.at(i, q) * left.at(i, q);
      pq += left.at(i, p) * left.at(i, q);
    }
    if (std::abs(pq) < 1e-15 * std::sqrt(pp * qq)) return;
    const double zeta = (qq - pp) / (2 * pq);
    const double t = (zeta > 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
    const double c = 1 / std::sqrt(1 + t * t), s = c * t;
    for (Matrix* m : {&left, &right}) {
      for (int64_t i = 0; i < m->rows; ++i) {
        const double x = m->at(i, p), y = m->at(i, q);
        m->at(i, p) = c * x - s * y;
        m->at(i, q) = s * x + c * y;
      }
    }
  }

  Matrix left, right;
  Values values;
};

}  // namespace

TEST_CASE("Newton-Schulz equals the same polynomials in float64, for square, wide and tall matrices") {
  for (const NewtonSchulzCoefficients coefficients : {kJordan, kPolarExpress}) {
    for (const auto& [rows, columns] :
         {std::pair<int64_t, int64_t>{64, 64}, {64, 256}, {256, 64}, {31, 47}, {1, 64}, {64, 1}}) {
      for (const double condition : {1.0, 100.0}) {
        for (const DType dtype : {DType::kF32, DType::kBF16}) {
          INFO("(" << rows << ", " << columns << ") " << name_of(dtype) << ", condition " << condition << ", a "
                   << rows_of(coefficients)[0][0]);
          const HostTensor matrix = with_condition(dtype, rows, columns, condition);
          const Matrix expected = orthogonalised64(matrix, coefficients);
          // bf16 rounds X, G and H in each step: that alone is 0.5 to 3.1 %, as measured on the CPU.
          const double bound = dtype == DType::kF32 ? 1e-5 : 0.04;
          CHECK(apart(Buffers(matrix).orthogonalised(coefficients), expected) < bound);
        }
      }
    }
  }
}

TEST_CASE("Newton-Schulz maps each singular value by its polynomials, however small") {
  const int64_t rows = 47, columns = 31;
  for (const NewtonSchulzCoefficients coefficients : {kJordan, kPolarExpress}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const HostTensor matrix = with_condition(dtype, rows, columns, 1e6);
      const Svd svd(matrix);  // of the stored values
      const Matrix result = Buffers(matrix).orthogonalised(coefficients);
      const Matrix seen = product(transposed(svd.left), product(result, svd.right));
      const double norm = std::sqrt(dot(svd.values, svd.values));
      double worst = 0, greatest = 0, least = 1;
      for (int64_t k = 0; k < columns; ++k) {
        double s = svd.values[static_cast<size_t>(k)] / (margin_of(coefficients) * norm);
        for (const auto& [a, b, c] : rows_of(coefficients)) s = a * s + b * std::pow(s, 3) + c * std::pow(s, 5);
        worst = std::max(worst, std::abs(seen.at(k, k) - s));
        greatest = std::max(greatest, s);
        least = std::min(least, s);
      }
      // A rounding of X moves its elements by this part. That moves a singular value by it over sqrt(M N), times a
      // normal deviate, and the steps magnify the smallest values by the product of their a. Few roundings count.
      double unit = dtype == DType::kF32 ? 0x1p-24 : 0x1p-9;
      for (const auto& row : rows_of(coefficients)) unit *= row[0];
      INFO(name_of(dtype) << ", a " << rows_of(coefficients)[0][0]);
      CHECK(worst < 8 * unit / std::sqrt(static_cast<double>(rows * columns)));
      CHECK(greatest > 0.8);
      if (dtype == DType::kF32) CHECK(least < 0.01);
    }
  }
}

TEST_CASE("Newton-Schulz leaves a zero matrix zero") {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const Shape& shape : {Shape{31, 47}, {64, 8}}) {
      const Matrix result = Buffers(HostTensor(dtype, shape)).orthogonalised(kJordan);
      CHECK(result.values == Values(static_cast<size_t>(shape.count()), 0));
    }
  }
}

TEST_CASE("Newton-Schulz is three GEMMs a step, of 4 s^2 l + 2 s^3 FLOPs, whose algorithms no timing chooses") {
  struct Notes : Observer {
    void begin(Stream&, const Call& call) override {
      const auto* const* gemm = std::get_if<const Gemm*>(&call.arguments);
      if (gemm == nullptr) return;
      ++gemms;
      fixed += (*gemm)->choice == AlgorithmChoice::kFixed;
      flops += call.flops;
    }
    void end(Stream&, const Call&) override {}
    int gemms = 0, fixed = 0;
    double flops = 0;
  };
  for (const Shape& shape : {Shape{31, 47}, {47, 31}}) {
    Notes notes;
    const Observation watched(*under_test().backend.device, notes);
    Buffers(random_tensor(DType::kF32, shape, "x")).orthogonalised(kJordan);
    CHECK((notes.gemms == 15 && notes.fixed == 15));
    CHECK(notes.flops == 5 * (4.0 * 31 * 31 * 47 + 2.0 * 31 * 31 * 31));
  }
}

TEST_CASE("Polar Express refuses another number of steps than its table has") {
  CHECK(quintics_of(kPolarExpress, 5).size() == 5);
  CHECK(quintics_of(kJordan, 7).size() == 7);
  CHECK_THROWS_WITH(quintics_of(kPolarExpress, 6), Catch::Contains("for 5 steps, not for 6"));
}
