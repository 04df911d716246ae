#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tasks/api/task.h"
#include "engine/tasks/ruler/word_lists.h"
#include "policies/methods/seeded_random.h"

namespace kvscope::engine::niah {

/// Sentences about a key and its value.
struct Needle {
    std::string text;
    std::vector<std::pair<size_t, size_t>> facts;  ///< begin and end of the bytes of `text` that answer the question
};

/// The needles of a sample in the order of the text, and the question about some of them.
struct Facts {
    std::vector<Needle> needles;
    std::string question;
    std::vector<std::string> answers;
    std::set<std::string> keys;
};

/// Draws keys and values and puts them into sentences, as RULER's niah.
class FactMaker {
 public:
    /// @throws UsageError for options that contradict each other
    explicit FactMaker(const TaskOptions& options);

    [[nodiscard]] Facts draw(policies::SeededRandom& random) const;
    /// Returns a sentence about a key that is not among `keys`.
    [[nodiscard]] std::string draw_other(policies::SeededRandom& random, const std::set<std::string>& keys) const;
    /// Whether the haystack consists of such sentences.
    [[nodiscard]] bool fills_haystack() const { return fills_haystack_; }
    /// Returns a number of tokens that suffices for the answer.
    [[nodiscard]] int64_t n_new() const;

 private:
    enum class Kind { items, words, numbers, uuids };

    [[nodiscard]] static Kind kind_named(std::string_view name);
    void check() const;
    [[nodiscard]] std::string draw_text(policies::SeededRandom& random, Kind kind) const;
    /// Returns a text that is not in `known`, and adds it.
    [[nodiscard]] std::string draw_new(policies::SeededRandom& random, Kind kind, std::set<std::string>& known) const;
    [[nodiscard]] std::string phrase(const std::string& key) const;  ///< "the lantern"
    [[nodiscard]] std::string statement(const std::string& key, const std::string& value) const;
    [[nodiscard]] std::string question_about(const std::vector<std::string>& keys) const;
    void need_reasoning(Facts& facts, const std::string& key, policies::SeededRandom& random) const;

    bool needs_reasoning_ = false, fills_haystack_ = false;
    Kind keys_, values_;
    size_t n_keys_, n_values_, n_queries_;
    std::string text_, question_, answer_;  ///< of the user; empty for the built-in ones
    std::optional<ruler::AdjectiveNouns> words_{};
};

}  // namespace kvscope::engine::niah
