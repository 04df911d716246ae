#pragma once

#include <cstdint>
#include <span>

#include "policies/api/further_interfaces.h"

namespace kvscope::policies {

/// Entries of one row at a decode step. Entries of a question that was read after the compression are not counted.
class DecodeStepEntries {
 public:
    DecodeStepEntries(const RunContext& context, const StepObservations& step, std::span<const uint32_t> positions)
        : positions_(positions), question_from_(context.n_tokens), question_to_(step.position - step.step) {}

    [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(positions_.size()); }
    [[nodiscard]] int64_t position(uint32_t i) const { return positions_[i]; }
    [[nodiscard]] bool is_question(uint32_t i) const {
        return position(i) >= question_from_ && position(i) < question_to_;
    }

    [[nodiscard]] int64_t n_counted() const {
        if (question_from_ >= question_to_) return size();
        int64_t counted = 0;
        for (uint32_t i = 0; i < size(); ++i) counted += !is_question(i);
        return counted;
    }

 private:
    std::span<const uint32_t> positions_;
    int64_t question_from_;
    int64_t question_to_;
};

}  // namespace kvscope::policies
