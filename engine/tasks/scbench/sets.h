#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kvscope::engine::scbench {

/// How the answers to one kind of question are limited and scored.
struct Answering {
    std::string_view metric;  ///< see scorer_named()
    int64_t n_new;            ///< largest number of answer tokens
};

/// One of SCBench's sets. {input} in formats is a turn's input, {target} the question for it, {choices} the options;
/// {prefix} is {target} in a conversation, and otherwise the first {input}.
struct Set {
    std::string_view name;
    Answering answering;          ///< of sets with one kind of questions
    std::string_view before;      ///< before the context
    std::string_view first_turn;  ///< first question of a conversation, after the context and an empty line
    std::string_view later_turn;  ///< other questions of a conversation, after the last answer and an empty line
    std::string_view request;     ///< question of its own, directly after the context

    /// Whether each turn names its kind in the field "task".
    [[nodiscard]] bool is_mixed() const { return answering.metric.empty(); }
};

/// Kinds of turns of mixed sets.
struct Part {
    std::string_view task;
    Answering answering;
};

[[nodiscard]] std::span<const Set> sets();
[[nodiscard]] std::span<const Part> parts();

/// @param origin of the name, for messages @throws UsageError for an unknown set, or one whose scores are not supported
[[nodiscard]] const Set& set_named(std::string_view name, std::string_view origin);

}  // namespace kvscope::engine::scbench
