#include "eval/task_form.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "eval/text_template.h"

namespace tokamak {

namespace {

constexpr TaskMetric kAcc = TaskMetric::kAcc, kAccNorm = TaskMetric::kAccNorm, kPerplexity = TaskMetric::kPerplexity;

// The categories of MMLU (Hendrycks et al. 2021, 2009.03300).
const std::vector<PartGroup>& mmlu_categories() {
  static const std::vector<PartGroup> groups = {
      {"humanities",
       {"formal_logic", "high_school_european_history", "high_school_us_history", "high_school_world_history",
        "international_law", "jurisprudence", "logical_fallacies", "moral_disputes", "moral_scenarios", "philosophy",
        "prehistory", "professional_law", "world_religions"}},
      {"other",
       {"business_ethics", "clinical_knowledge", "college_medicine", "global_facts", "human_aging", "management",
        "marketing", "medical_genetics", "miscellaneous", "nutrition", "professional_accounting",
        "professional_medicine", "virology"}},
      {"social_sciences",
       {"econometrics", "high_school_geography", "high_school_government_and_politics", "high_school_macroeconomics",
        "high_school_microeconomics", "high_school_psychology", "human_sexuality", "professional_psychology",
        "public_relations", "security_studies", "sociology", "us_foreign_policy"}},
      {"stem",
       {"abstract_algebra", "anatomy", "astronomy", "college_biology", "college_chemistry", "college_computer_science",
        "college_mathematics", "college_physics", "computer_security", "conceptual_physics", "electrical_engineering",
        "elementary_mathematics", "high_school_biology", "high_school_chemistry", "high_school_computer_science",
        "high_school_mathematics", "high_school_physics", "high_school_statistics", "machine_learning"}}};
  return groups;
}

// The examples of the harness's MBPP, which are problems 2, 3 and 4 of the data set.
std::vector<std::string> mbpp_samples() {
  return {
      R"json({"text": "Write a function to find the similar elements from the given two tuple lists.",
"code": "def similar_elements(test_tup1, test_tup2):\r\n  res = tuple(set(test_tup1) & set(test_tup2))\r\n  return (res) ",
"test_list": ["assert similar_elements((3, 4, 5, 6),(5, 7, 4, 10)) == (4, 5)",
"assert similar_elements((1, 2, 3, 4),(5, 4, 3, 7)) == (3, 4)",
"assert similar_elements((11, 12, 14, 13),(17, 15, 14, 13)) == (13, 14)"]})json",
      R"json({"text": "Write a python function to identify non-prime numbers.",
"code": "import math\r\ndef is_not_prime(n):\r\n    result = False\r\n    for i in range(2,int(math.sqrt(n)) + 1):\r\n        if n % i == 0:\r\n            result = True\r\n    return result",
"test_list": ["assert is_not_prime(2) == False", "assert is_not_prime(10) == True",
"assert is_not_prime(35) == True"]})json",
      R"json({"text": "Write a function to find the largest integers from a given list of numbers using heap queue algorithm.",
"code": "import heapq as hq\r\ndef heap_queue_largest(nums,n):\r\n  largest_nums = hq.nlargest(n, nums)\r\n  return largest_nums",
"test_list": ["assert heap_queue_largest( [25, 35, 22, 85, 14, 65, 75, 22, 58],3)==[85, 75, 65] ",
"assert heap_queue_largest( [25, 35, 22, 85, 14, 65, 75, 22, 58],2)==[85, 75] ",
"assert heap_queue_largest( [25, 35, 22, 85, 14, 65, 75, 22, 58],5)==[85, 75, 65, 58, 35]"]})json"};
}

struct Row {
  EvalKind kind;
  TaskForm form;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {EvalKind::kHellaSwag,
       {.context = "{activity_label}: {ctx_a} {ctx_b|capitalize}",
        .choices = {"{endings}"},
        .answer = "{label}",
        .cleaning = TextCleaning::kWikiHow,
        .shots_from = "train",
        .metrics = {kAcc, kAccNorm}}},
      {EvalKind::kArc,
       {.context = "Question: {question}\nAnswer:",
        .choices = {"{choices.text}"},
        .answer = "{answerKey}",
        .labels = {"{choices.label}"},
        .shots = ShotRule::kRandom,
        .shots_from = "train",
        .metrics = {kAcc, kAccNorm}}},
      {EvalKind::kMmlu,
       {.description = "The following are multiple choice questions (with answers) about {subject|spaces}.\n\n",
        .context = "{question|strip}\nA. {choices.0}\nB. {choices.1}\nC. {choices.2}\nD. {choices.3}\nAnswer:",
        .choices = {"A", "B", "C", "D"},
        .answer = "{answer}",
        .part = "{subject}",
        .groups = mmlu_categories(),
        .shots = ShotRule::kFirst,
        .shots_from = "dev"}},
      {EvalKind::kMmluRu,  // the harness's m_mmlu_ru
       {.context = "{instruction|strip}\nA. {option_a}\nB. {option_b}\nC. {option_c}\nD. {option_d}\nAnswer:",
        .choices = {"A", "B", "C", "D"},
        .answer = "{answer}",
        .labels = {"A", "B", "C", "D"},
        .shots = ShotRule::kFirst,
        .shots_from = "train"}},
      {EvalKind::kPiqa,
       {.context = "Question: {goal}\nAnswer:",
        .choices = {"{sol1}", "{sol2}"},
        .answer = "{label}",
        .shots_from = "train",
        .metrics = {kAcc, kAccNorm}}},
      {EvalKind::kWinoGrande,  // the choice is part of the context; the text after it is scored (Trinh and Le 2018)
       {.context = "{sentence|before:_}{choice}",
        .choices = {"{option1}", "{option2}"},
        .continuation = " {sentence|after:_|strip}",
        .answer = "{answer}",
        .labels = {"1", "2"},
        .shots_from = "train"}},
      {EvalKind::kBoolQ,
       {.context = "{passage}\nQuestion: {question}?\nAnswer:",
        .choices = {"no", "yes"},
        .answer = "{label}",
        .shots_from = "train"}},
      {EvalKind::kOpenBookQa,
       {.context = "{question_stem}",
        .choices = {"{choices.text}"},
        .answer = "{answerKey|lstrip}",
        .labels = {"{choices.label}"},
        .shots = ShotRule::kRandom,
        .shots_from = "train",
        .metrics = {kAcc, kAccNorm}}},
      {EvalKind::kCommonsenseQa,
       {.context = "Question: {question|strip}\nA. {choices.text.0}\nB. {choices.text.1}\nC. {choices.text.2}\n"
                   "D. {choices.text.3}\nE. {choices.text.4}\nAnswer:",
        .choices = {"A", "B", "C", "D", "E"},
        .answer = "{answerKey}",
        .labels = {"A", "B", "C", "D", "E"},
        .shots_from = "train"}},
      {EvalKind::kLambada,  // the harness's lambada_openai: the last word of a text
       {.context = "{text|before_last: }",
        .continuation = " {text|after_last: }",
        .shots = ShotRule::kRandom,
        .shots_from = "test",
        .metrics = {kPerplexity, kAcc}}},
      {EvalKind::kGsm8k,
       {.context = "Question: {question}\nAnswer:",
        .continuation = "{answer}",
        .shots = ShotRule::kRandom,
        .shots_from = "train",
        .metrics = {TaskMetric::kStrictMatch, TaskMetric::kFlexibleExtract},
        .until = {"Question:", "</s>", "<|im_end|>"}}},
      {EvalKind::kTriviaQa,  // each alias is right; an example has the first
       {.context = "Question: {question}?\nAnswer:",
        .choices = {"{answer.aliases}"},
        .answer = "0",
        .shots_from = "train",
        .metrics = {TaskMetric::kExactMatch},
        .until = {"\n", ".", ","}}},
      {EvalKind::kHumanEval,  // Chen et al. 2021, 2107.03374
       {.context = "{prompt}",
        .continuation = "{test}\ncheck({entry_point})",
        .metrics = {TaskMetric::kPassAtK},
        .until = {"\nclass", "\ndef", "\n#", "\nif", "\nprint"},
        .max_gen_toks = 1024,
        .program_before = "{prompt}",
        .program_after = "\n{test}\ncheck({entry_point})"}},
      {EvalKind::kMbpp,  // Austin et al. 2021, 2108.07732
       {.context = "You are an expert Python programmer, and here is your task: {text} Your code should pass these "
                   "tests:\n\n{test_list.0}\n{test_list.1}\n{test_list.2}\n[BEGIN]\n",
        .choices = {"{code}\n[DONE]"},
        .continuation = "{choice}",
        .answer = "0",
        .shots = ShotRule::kFirst,
        .samples = mbpp_samples(),
        .metrics = {TaskMetric::kPassAtK},
        .until = {"[DONE]"},
        .program_after = "\n{test_list.0}\n{test_list.1}\n{test_list.2}"}},
  };
  return table;
}

}  // namespace

const TaskForm& form_of(EvalKind kind) {
  const auto row = std::find_if(rows().begin(), rows().end(), [&](const Row& one) { return one.kind == kind; });
  TOKAMAK_CHECK(row != rows().end(), "no form of ", enum_name(kind));
  return row->form;
}

std::vector<FieldError> problems_of(const TaskForm& form) {
  std::vector<FieldError> problems;
  const auto check = [&](const std::string& key, const std::string& text) {
    const std::string problem = TextTemplate::problem_of(text);
    if (!problem.empty()) problems.push_back({key, str(key, " \"", text, "\" ", problem), "see docs/evaluate.md"});
  };
  const auto require = [&](bool holds, const std::string& key, const std::string& what) {
    if (!holds) problems.push_back({key, str(key, " ", what), ""});
  };
  check("description", form.description);
  check("context", form.context);
  check("continuation", form.continuation);
  check("answer", form.answer);
  check("part", form.part);
  check("program_before", form.program_before);
  check("program_after", form.program_after);
  for (const std::string& choice : form.choices) check("choices", choice);
  for (const std::string& label : form.labels) check("labels", label);

  const bool chooses = !form.choices.empty();
  require(!form.context.empty(), "context", "is missing");
  require(chooses == !form.answer.empty(), "answer", chooses ? "is missing: which choice is right" : "needs choices");
  require(chooses || !form.continuation.empty(), "continuation", "is missing, or choices");
  require(chooses || form.labels.empty(), "labels", "need choices");
  require(!form.metrics.empty(), "metrics", "are missing");
  if (form.metrics.empty()) return problems;
  const auto is_pass = [](TaskMetric metric) { return metric == TaskMetric::kPassAtK; };
  const auto same_kind = [&](TaskMetric metric) {
    return judges_texts(metric) == form.generates() && is_pass(metric) == is_pass(form.metrics[0]);
  };
  require(std::all_of(form.metrics.begin(), form.metrics.end(), same_kind), "metrics",
          "must all be of choices, of generated texts, or of generated programs");
  require(!form.generates() || form.part.empty(), "part", "is not for generated texts");
  require(form.max_gen_toks >= 1, "max_gen_toks", "must be at least 1");
  for (const TaskMetric metric : form.metrics) {
    require(metric != TaskMetric::kAccNorm || chooses, "metrics", "have acc_norm, which needs choices");
    require(metric != TaskMetric::kPerplexity || !chooses, "metrics", "have perplexity, which is for one continuation");
  }
  require(form.groups.empty() || !form.part.empty(), "groups", "need part");
  return problems;
}

}  // namespace tokamak
