#include "data/rules/word_exceptions.h"

#include <algorithm>
#include <span>

#include "base/hash.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr size_t kSlots = 8192;  // a power of two, more than twice the words

// spaCy's lists (lang/tokenizer_exceptions.py, lang/en/tokenizer_exceptions.py), with spaces between words.
constexpr std::string_view kWholeWords =
    R"(' '' (*_*) (-8 (-: (-; (-_-) (._.) (: (; (= (>_<) (^_^) (o: (¬_¬) (ಠ_ಠ) (╯°□°）╯︵┻━┻ )-: ): -_- -__- ._. 0.0 0.o 0_0 )"
    R"(0_o 8) 8-) 8-D 8D :'( :') :'-( :'-) :( :(( :((( :() :) :)) :))) :* :-( :-(( :-((( :-) :-)) :-))) :-* :-/ :-0 :-3 )"
    R"(:-> :-D :-O :-P :-X :-] :-o :-p :-x :-| :-} :/ :0 :1 :3 :> :D :O :P :X :] :o :o) :p :x :| :} ;) ;-) ;-D ;D ;_; <.< )"
    R"(</3 <3 <33 <333 <space> =( =) =/ =3 =D =[ =] =| >.< >.> >:( >:o ><(((*> @_@ C++ O.O O.o O_O O_o V.V V_V XD XDD )"
    R"([-: [: [= \") \n \t ]= ^_^ ^__^ ^___^ a. b. c. d. e. f. g. h. i. j. k. l. m. n. o. o.0 o.O o.o o_0 o_O o_o p. q. )"
    R"(r. s. t. u. v. v.v v_v w. x. xD xDD y. z. ¯\(ツ)/¯ ä. ö. ü. ಠ_ಠ ಠ︵ಠ —)";
constexpr std::string_view kWholeEnglish =
    "'S 's ‘S ‘s ’S ’s and/or w/o 're ’re 'Cause 'cause ’Cause ’cause 'Cos 'cos ’Cos ’cos 'Coz 'coz ’Coz ’coz 'Cuz "
    "'cuz ’Cuz ’cuz 'bout ’bout 'd ’d 'em ’em em 'll ’ll ll 'nuff ’nuff nuff Doin Goin Nothin Nuthin Ol Somethin Havin "
    "Lovin doin goin nothin nuthin ol somethin havin lovin Doin' Goin' Nothin' Nuthin' Ol' Somethin' Havin' Lovin' doin' "
    "goin' nothin' nuthin' ol' somethin' havin' lovin' Doin’ Goin’ Nothin’ Nuthin’ Ol’ Somethin’ Havin’ Lovin’ doin’ "
    "goin’ nothin’ nuthin’ ol’ somethin’ havin’ lovin’ Ma'am ma'am Ma’am ma’am O'clock o'clock O’clock o’clock a.m. Adm. "
    "Bros. co. Co. Corp. D.C. Dr. e.g. E.g. E.G. Gen. Gov. i.e. I.e. I.E. Inc. Jr. Ltd. Md. Messrs. Mo. Mont. Mr. Mrs. "
    "Ms. p.m. Ph.D. Prof. Rep. Rev. Sen. St. vs. v.s. Ak. Ala. Apr. Ariz. Ark. Aug. Calif. Colo. Conn. Dec. Del. Feb. "
    "Fla. Ga. Ia. Id. Ill. Ind. Jan. Jul. Jun. Kan. Kans. Ky. La. Mar. Mass. Mich. Minn. Miss. Mt. N.C. N.D. N.H. N.J. "
    "N.M. N.Y. Neb. Nebr. Nev. Nov. Oct. Okla. Ore. Pa. S.C. Sep. Sept. Tenn. Va. Wash. Wis.";

// A base and an ending are one exception, cut at each '|'. The base may begin with a capital. The apostrophe is ', ’ or
// missing.
struct Contractions {
  std::string_view bases, endings;
};
constexpr Contractions kContractions[] = {
    {"i you he she it we they who what when where why how there that this these those", "|'ll |'ll|'ve |'d |'d|'ve"},
    {"i you we they who what when where why how there these those could might must should would not", "|'ve"},
    {"you we they who what when where why how there these those", "|'re"},
    {"he she it who what when where why how there that this", "|'s"},
    {"i", "|'m |'m|a"},
    {"ca could do does did had may might must need ought sha should wo would", "|n't |n't|'ve"},
    {"ai are is was were have has dare", "|n't"},
    {"can", "|not"},
    {"gon", "|na"},
    {"got", "|ta"},
    {"how", "|'d|'y"},
};
constexpr std::string_view kWithApostrophe = "let|'s c'm|on";
constexpr std::string_view kInLowerCase = "y'|all";
// Without an apostrophe these are other words.
constexpr std::string_view kOtherWords = "ill its hell shell shed were well whore howdy";

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const size_t space = std::min(list.find(' '), list.size());
    words.push_back(list.substr(0, space));
    list.remove_prefix(std::min(space + 1, list.size()));
  }
  return words;
}

std::string with_capital(std::string_view word) {
  std::string out(word);
  if (out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

}  // namespace

WordExceptions::WordExceptions(WordRules rules) : slots_(kSlots) {
  for (const std::string_view word : words_of(kWholeWords)) add(word, {});
  for (const std::string_view letter : words_of("C c F f K k")) add(str("°", letter, "."), {2, 3});
  if (rules == WordRules::kEnglish) {
    for (const std::string_view word : words_of(kWholeEnglish)) add(word, {});
    add_contractions();
  }
}

const WordExceptions::Cuts* WordExceptions::look_up(std::string_view word) const {
  if (word.size() > longest_) return nullptr;
  const Entry& entry = slots_[slot_of(word)];
  return entry.word.empty() ? nullptr : &entry.cuts;
}

void WordExceptions::add_contractions() {
  enum class Forms { kAll, kWithApostrophe, kInLowerCase };
  const auto add_forms = [&](std::string_view marked, Forms forms) {
    for (const std::string_view apostrophe : {std::string_view("'"), std::string_view("’"), std::string_view()}) {
      if (apostrophe.empty() && forms == Forms::kWithApostrophe) continue;
      std::string word;
      Cuts cuts{};
      size_t count = 0;
      for (const char c : marked) {
        if (c == '|')
          cuts[count++] = static_cast<uint8_t>(word.size());
        else if (c == '\'')
          word += apostrophe;
        else
          word += c;
      }
      const std::vector<std::string_view> others = words_of(kOtherWords);
      if (std::find(others.begin(), others.end(), word) != others.end()) continue;
      add(word, cuts);
      if (forms != Forms::kInLowerCase) add(with_capital(word), cuts);
    }
  };
  for (const Contractions& family : kContractions)
    for (const std::string_view base : words_of(family.bases))
      for (const std::string_view ending : words_of(family.endings)) add_forms(str(base, ending), Forms::kAll);
  for (const std::string_view word : words_of(kWithApostrophe)) add_forms(word, Forms::kWithApostrophe);
  for (const std::string_view word : words_of(kInLowerCase)) add_forms(word, Forms::kInLowerCase);
  for (int hour = 1; hour <= 12; ++hour)
    for (const std::string_view half : words_of("am pm a.m. p.m.")) {
      const std::string digits = str(hour);
      add(digits + std::string(half), {static_cast<uint8_t>(digits.size())});
    }
}

void WordExceptions::add(std::string_view word, const Cuts& cuts) {
  Entry& entry = slots_[slot_of(word)];
  entry = {std::string(word), cuts};
  has_shape_.set(shape_of(word));
  longest_ = std::max(longest_, word.size());
}

size_t WordExceptions::slot_of(std::string_view word) const {
  size_t slot = xxh3_64(std::as_bytes(std::span(word))) % kSlots;
  while (!slots_[slot].word.empty() && slots_[slot].word != word) slot = (slot + 1) % kSlots;
  return slot;
}

}  // namespace tokamak
