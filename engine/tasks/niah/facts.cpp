#include "engine/tasks/niah/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "common/replace_all.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/item_names.h"

namespace kvscope::engine::niah {
namespace {

using policies::SeededRandom;

constexpr std::array owners{"Alice", "Boris", "Clara", "David", "Elena", "Frank"};
constexpr int64_t n_new_of_number = 24, n_new_of_ruler = 128;

std::string draw_from(const auto& list, SeededRandom& random) {
    return std::string(list[static_cast<size_t>(random.below(static_cast<int64_t>(list.size())))]);
}

/// Returns a UUID of version 4.
std::string draw_uuid(SeededRandom& random) {
    const uint64_t high = (random.next() & ~uint64_t{0xF000}) | 0x4000;
    const uint64_t low = (random.next() & ~(uint64_t{3} << 62)) | uint64_t{1} << 63;
    return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xFFFF, high & 0xFFFF,
                       low >> 48, low & 0xFFFFFFFFFFFF);
}

template <class T>
void shuffle(std::vector<T>& list, SeededRandom& random) {
    for (size_t i = list.size(); i > 1; --i)
        std::swap(list[i - 1], list[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string replaced(std::string text, std::string_view placeholder, std::string_view value) {
    replace_all(text, placeholder, value);
    return text;
}

/// Returns "a", "a and b" or "a, b, and c".
std::string listed(const std::vector<std::string>& parts) {
    if (parts.size() < 3) return fmt::format("{}", fmt::join(parts, " and "));
    return fmt::format("{}, and {}", fmt::join(parts.begin(), parts.end() - 1, ", "), parts.back());
}

[[noreturn]] void refuse(std::string_view option, std::string_view why) {
    throw UsageError(fmt::format("--{}: {}", option, why));
}

}  // namespace

FactMaker::Kind FactMaker::kind_named(std::string_view name) {
    if (name == "items") return Kind::items;
    if (name == "words") return Kind::words;
    return name == "numbers" ? Kind::numbers : Kind::uuids;
}

FactMaker::FactMaker(const TaskOptions& options)
    : needs_reasoning_(options.values.text("needle") == "reasoning"),
      fills_haystack_(options.values.text("filler") == "needles"),
      keys_(kind_named(options.values.text("keys"))),
      values_(kind_named(options.values.text("values"))),
      n_keys_(static_cast<size_t>(options.values.integer("n_keys"))),
      n_values_(static_cast<size_t>(options.values.integer("n_values"))),
      n_queries_(static_cast<size_t>(options.values.integer("n_queries"))),
      text_(options.values.text("needle_text")),
      question_(options.values.text("needle_question")),
      answer_(options.values.text("needle_answer")) {
    n_keys_ = std::max(n_keys_, n_queries_);  // as in RULER
    if (fills_haystack_ && !options.values.text("haystack").empty())
        refuse("filler", "needles replace the text of --haystack: omit one of both");
    check();
    if (keys_ == Kind::words || values_ == Kind::words) words_.emplace(options.files);
}

void FactMaker::check() const {
    const bool is_one = n_keys_ * n_values_ == 1;
    const bool has_texts = !text_.empty() || !question_.empty() || !answer_.empty();
    if (needs_reasoning_ &&
        (!is_one || has_texts || fills_haystack_ || keys_ != Kind::items || values_ != Kind::numbers))
        refuse("needle",
               "reasoning has one item, one number and a fixed text: omit --keys, --values, --n-keys, --n-values, "
               "--n-queries, --filler and the texts of the needle");
    const size_t n_items = item_names.size() - (fills_haystack_ ? 1 : 0);
    if (keys_ == Kind::items && n_keys_ > n_items)
        refuse("n-keys", fmt::format("expected at most {} items, found {}: use --keys words", n_items, n_keys_));
    if (text_.empty() != question_.empty()) refuse("needle-text", "give both --needle-text and --needle-question");
    if (!text_.empty() && !has(text_, "{value}"))
        refuse("needle-text",
               fmt::format("expected a text with {{value}} in place of the answer, found \"{}\"", text_));
    const bool needs_key = n_keys_ > 1 || fills_haystack_;
    if (!text_.empty() && needs_key && (!has(text_, "{key}") || !has(question_, "{key}")))
        refuse("needle-text", "several keys need {key} in --needle-text and in --needle-question");
    if (answer_.empty()) return;
    if (text_.empty()) refuse("needle-answer", "give --needle-text and --needle-question, too");
    if (!is_one || fills_haystack_ || values_ != Kind::numbers)
        refuse("needle-answer", "is the only value: omit --values, --n-keys, --n-values, --n-queries and --filler");
}

int64_t FactMaker::n_new() const {
    const bool is_short = n_queries_ * n_values_ == 1 && values_ != Kind::uuids && answer_.empty();
    return is_short ? n_new_of_number : n_new_of_ruler;
}

std::string FactMaker::draw_text(SeededRandom& random, Kind kind) const {
    if (kind == Kind::items) return draw_from(item_names, random);
    if (kind == Kind::words) return words_->at(static_cast<size_t>(random.below(static_cast<int64_t>(words_->size()))));
    return kind == Kind::uuids ? draw_uuid(random) : std::to_string(100000 + random.below(900000));
}

std::string FactMaker::draw_new(SeededRandom& random, Kind kind, std::set<std::string>& known) const {
    std::string text = draw_text(random, kind);
    while (!known.insert(text).second) text = draw_text(random, kind);
    return text;
}

std::string FactMaker::phrase(const std::string& key) const { return keys_ == Kind::items ? "the " + key : key; }

std::string FactMaker::statement(const std::string& key, const std::string& value) const {
    if (!text_.empty()) return replaced(replaced(text_, "{key}", key), "{value}", value);
    const char* noun = values_ == Kind::numbers ? "number" : values_ == Kind::words ? "word" : "UUID";
    return n_values_ == 1 ? fmt::format("The special magic {} of {} is {}.", noun, phrase(key), value)
                          : fmt::format("One of the special magic {}s of {} is {}.", noun, phrase(key), value);
}

std::string FactMaker::question_about(const std::vector<std::string>& keys) const {
    if (!question_.empty()) return replaced(question_, "{key}", listed(keys));
    const char* noun = values_ == Kind::numbers ? "number" : values_ == Kind::words ? "word" : "UUID";
    std::vector<std::string> phrases;
    for (const std::string& key : keys) phrases.push_back(phrase(key));
    return n_queries_ * n_values_ == 1
               ? fmt::format("What is the special magic {} of {}? Answer with the {}.", noun, listed(phrases), noun)
               : fmt::format("What are all the special magic {0}s of {1}? Answer with the {0}s.", noun,
                             listed(phrases));
}

Facts FactMaker::draw(SeededRandom& random) const {
    Facts facts;
    std::vector<std::string> keys;
    std::vector<std::vector<std::string>> values(n_keys_);
    std::set<std::string> known_values;
    for (size_t i = 0; i < n_keys_; ++i) {
        keys.push_back(draw_new(random, keys_, facts.keys));
        for (size_t j = 0; j < n_values_; ++j)
            values[i].push_back(answer_.empty() ? draw_new(random, values_, known_values) : answer_);
    }
    std::vector<size_t> asked(n_keys_);
    std::iota(asked.begin(), asked.end(), size_t{0});
    if (n_queries_ < n_keys_) shuffle(asked, random);
    asked.resize(n_queries_);
    for (size_t i = 0; i < n_keys_; ++i) {
        const bool is_asked = std::ranges::find(asked, i) != asked.end();
        for (const std::string& value : values[i]) {
            Needle needle{.text = statement(keys[i], value), .facts = {}};
            if (is_asked) needle.facts.emplace_back(0, needle.text.size());
            facts.needles.push_back(std::move(needle));
        }
    }
    std::vector<std::string> asked_keys;
    for (const size_t i : asked) {
        asked_keys.push_back(keys[i]);
        facts.answers.insert(facts.answers.end(), values[i].begin(), values[i].end());
    }
    facts.question = question_about(asked_keys);
    if (needs_reasoning_) need_reasoning(facts, keys.front(), random);
    if (facts.needles.size() > 1) shuffle(facts.needles, random);
    return facts;
}

void FactMaker::need_reasoning(Facts& facts, const std::string& key, SeededRandom& random) const {
    const std::string owner = draw_from(owners, random);
    const std::string owns = fmt::format("{} owns the {}.", owner, key);
    Needle& needle = facts.needles.front();
    needle.text = owns + " " + needle.text;
    needle.facts = {{0, owns.size()}, {owns.size() + 1, needle.text.size()}};
    facts.question =
        fmt::format("What is the special magic number of the thing that {} owns? Answer with the number.", owner);
}

std::string FactMaker::draw_other(SeededRandom& random, const std::set<std::string>& keys) const {
    std::string key = draw_text(random, keys_);
    while (keys.contains(key)) key = draw_text(random, keys_);
    return statement(key, draw_text(random, values_));
}

}  // namespace kvscope::engine::niah
