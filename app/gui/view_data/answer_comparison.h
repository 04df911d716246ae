#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/session/session.h"
#include "app/gui/view_data/comparison.h"
#include "app/gui/view_data/text_diff.h"

namespace kvscope::gui {

struct AnswerOutput {
    std::string text;
    std::vector<Word> words;
    std::vector<StepPlace> steps;    ///< position of each generated token in `text`
    std::vector<float> kl;           ///< (T) KL divergence from the full run in nats; may be empty
    std::vector<uint8_t> agreement;  ///< (T) whether the step agrees with the full run; may be empty
    std::string switches;            ///< says when the cache became full or compressed; empty if it never did

    bool has_reference = false;
    bool by_tokens = false;           ///< count tokens, not words; false if ids are missing or vocabularies differ
    Difference difference;            ///< difference from the reference, in tokens or words
    std::vector<StepPlace> marks;     ///< where the answer differs from the reference; adjacent places are joined
    std::vector<size_t> gaps;         ///< byte positions where the reference has additional text
    std::vector<float> reference_kl;  ///< (T) KL divergence of the reference; may be empty

    /// Returns kl − reference_kl for the steps that both answers have.
    [[nodiscard]] std::vector<float> kl_difference() const;
    [[nodiscard]] bool is_as_reference() const { return difference.n_extra() + difference.n_missing() == 0; }
    /// Returns descriptions of the difference, longest first: "3 extra, 8 missing of 21 tokens", …, "+3 −8".
    [[nodiscard]] std::vector<std::string> difference_texts() const;
    [[nodiscard]] const char* unit() const { return by_tokens ? "tokens" : "words"; }
    /// Whether the token of a decode step, or a word that contains it, differs from the reference.
    [[nodiscard]] bool is_marked(size_t step) const;
};

[[nodiscard]] AnswerOutput read_and_compare_answer(const RunAt& of, const std::optional<RunAt>& reference);

/// Returns the places that differ. Adjacent places are joined, and empty places are omitted.
[[nodiscard]] std::vector<StepPlace> join_differing_places(const std::vector<StepPlace>& places,
                                                           const std::vector<bool>& differs);

/// The reference for shown answers: the full run of the same prompt, run A, or the matching runs of another trace.
class AnswerReference {
 public:
    void choose_full() { chosen_ = Kind::full; }
    void choose_a() { chosen_ = Kind::a; }
    void choose_trace(const std::string& name) {
        chosen_ = Kind::trace;
        trace_ = name;
    }

    /// Determines the reference for this frame. Call once per frame before the other functions.
    void resolve(const Session& session);

    /// Returns the reference of a run, or nullopt if the run is the reference itself or has no matching run.
    [[nodiscard]] std::optional<RunKey> of(const Session& session, const RunKey& run) const;

    /// Returns each run of `runs` that has a reference, paired with the reference.
    [[nodiscard]] Compared compared(const Session& session, const std::vector<RunKey>& runs) const;

    [[nodiscard]] bool is_full() const { return now_ == Kind::full; }
    [[nodiscard]] bool is_trace(const std::string& name) const { return now_ == Kind::trace && trace_ == name; }
    [[nodiscard]] bool is_one_run() const { return now_ == Kind::a; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::string possessive() const { return now_ == Kind::full ? "the full cache's" : name_ + "'s"; }

    void save(nlohmann::json& state) const;
    void load(const nlohmann::json& state);

 private:
    enum class Kind { full, a, trace };
    Kind chosen_ = Kind::full;
    std::string trace_;  ///< name of the chosen trace

    Kind now_ = Kind::full;  ///< the reference in use: `chosen_` if it is available, else full
    std::string name_{full_policy};
    std::vector<ComparedRuns> pairs_;  ///< runs of all other traces, each with the matching run of `trace_`
};

}  // namespace kvscope::gui
