#pragma once

#include <optional>

#include "app/gui/session/selection.h"

namespace kvscope::gui {

/// A and B, as far as a person has chosen them (Session::compared() fills in the rest), and the flicker between them.
struct ChosenPair {
    std::optional<RunKey> a, b;
    bool alone = false;             ///< where both are chosen, no other run is shown; the choice of shown runs stays
    std::optional<RunKey> flicker;  ///< shown alone for the moment; the choice of shown runs stays as it is

    bool is_complete() const { return a && b && *a != *b; }
    bool is_alone() const { return alone && is_complete(); }
    bool has(const RunKey& run) const { return a == run || b == run; }

    /// A run, or all runs of a document, are gone.
    void forget(const RunKey& run) {
        for (auto* slot : {&a, &b, &flicker})
            if (*slot == run) slot->reset();
    }
    void forget_document(int document) {
        for (auto* slot : {&a, &b, &flicker})
            if (*slot && (*slot)->document == document) slot->reset();
    }
};

}  // namespace kvscope::gui
