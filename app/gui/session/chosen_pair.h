#pragma once

#include <optional>

#include "app/gui/session/run_selection.h"

namespace kvscope::gui {

/// A and B, as far as a person has chosen them (Session::compared() fills in the rest), and the flicker between them.
struct ChosenPair {
    std::optional<RunKey> a, b;
    bool alone = false;             ///< where both are chosen, no other run is shown; the choice of shown runs stays
    std::optional<RunKey> flicker;  ///< shown alone for the moment; the choice of shown runs stays as it is

    bool is_complete() const { return a && b && *a != *b; }
    bool is_alone() const { return alone && is_complete(); }
    bool has(const RunKey& run) const { return a == run || b == run; }

    /// Chooses a run for A or B, or none. Where that ends a pair, the next one is not shown alone unasked.
    void choose(std::optional<RunKey>& slot, const std::optional<RunKey>& run) {
        const bool was_complete = is_complete();
        slot = run;
        alone = alone && (is_complete() || !was_complete);
    }

    /// A run, or all runs of a document, are gone. Another pair is not shown alone unasked.
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
