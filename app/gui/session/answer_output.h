#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/session/answer_text.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

/// What one run wrote, how far its distributions are from the full cache's, and what it has that a reference has not.
struct AnswerOutput {
    std::string text;
    std::vector<Word> words;
    std::vector<StepPlace> steps;    ///< of output_ids
    std::vector<float> kl;           ///< (T) to the full cache, nats; or empty
    std::vector<uint8_t> agreement;  ///< (T) or empty
    std::string switches;            ///< when its cache changed its form, as sentences; empty: never

    bool has_reference = false;
    bool by_tokens = false;           ///< else by words: an answer lacks its ids, or the vocabularies differ
    Difference difference;            ///< of its tokens or words from the reference's
    std::vector<StepPlace> marks;     ///< where those are that the reference has not, neighbours joined
    std::vector<size_t> gaps;         ///< bytes before which the reference has more
    std::vector<float> reference_kl;  ///< (T) of the reference; or empty

    /// kl − reference_kl, at the steps that both have.
    std::vector<float> kl_difference() const;
    bool is_as_reference() const { return difference.n_extra() + difference.n_missing() == 0; }
    /// How much it differs, in ever fewer words: "3 extra, 8 missing of 21 tokens", …, "+3 −8".
    std::vector<std::string> difference_texts() const;
    const char* unit() const { return by_tokens ? "tokens" : "words"; }
    /// Whether a decode step's token is marked; its words may be where `by_tokens` is not set.
    bool is_marked(size_t step) const;
};

/// @throws what trace::Reader throws
AnswerOutput read_answer(const RunAt& of, const std::optional<RunAt>& reference);

/// Marks of what differs, in places: neighbours joined, without those that wrote nothing.
std::vector<StepPlace> joined_marks(const std::vector<StepPlace>& places, const std::vector<bool>& differs);

}  // namespace kvscope::gui
