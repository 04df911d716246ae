#pragma once

#include <optional>

#include "app/gui/session/selection.h"

namespace kvscope::gui {

struct ChosenPair {
    std::optional<RunKey> a, b;
    bool alone = false;             ///< show only A and B; has an effect only if both are chosen
    std::optional<RunKey> flicker;  ///< the run that flicker shows instead of all others

    [[nodiscard]] bool is_complete() const { return a && b && *a != *b; }
    [[nodiscard]] bool is_alone() const { return alone && is_complete(); }
    [[nodiscard]] bool has(const RunKey& run) const { return a == run || b == run; }

    /// Sets or clears A or B. Resets `alone` if a complete pair becomes incomplete.
    void choose(std::optional<RunKey>& slot, const std::optional<RunKey>& run) {
        const bool was_complete = is_complete();
        slot = run;
        alone = alone && (is_complete() || !was_complete);
    }

    void forget(const RunKey& run) {
        forget_where([&](const RunKey& each) { return each == run; });
    }
    void forget_document(int document) {
        forget_where([&](const RunKey& each) { return each.document == document; });
    }

 private:
    template <class IsGone>
    void forget_where(const IsGone& is_gone) {
        const bool was_complete = is_complete();
        for (auto* slot : {&a, &b, &flicker})
            if (*slot && is_gone(**slot)) slot->reset();
        alone = alone && (is_complete() || !was_complete);
    }
};

}  // namespace kvscope::gui
