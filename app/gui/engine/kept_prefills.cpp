#include "app/gui/engine/kept_prefills.h"

#include <algorithm>
#include <utility>

#include "app/gui/session/session.h"

namespace kvscope::gui {
namespace {

constexpr size_t most_prefills = 2;

}  // namespace

bool KeptPrefills::Kept::is_of(int prompt) const {
    return std::find(prompts.begin(), prompts.end(), prompt) != prompts.end();
}

std::shared_ptr<const PrefillInMemory> KeptPrefills::find(int document, int prompt) const {
    for (const Kept& kept : kept_) {
        if (kept.document == document && kept.is_of(prompt)) return kept.prefill;
    }
    return nullptr;
}

void KeptPrefills::keep(int document, const std::vector<int>& prompts, std::shared_ptr<const PrefillInMemory> prefill) {
    const Kept fresh{document, prompts, std::move(prefill)};
    for (Kept& kept : kept_) {
        if (kept.document == document) std::erase_if(kept.prompts, [&](int prompt) { return fresh.is_of(prompt); });
    }
    std::erase_if(kept_, [](const Kept& kept) { return kept.prompts.empty(); });
    kept_.insert(kept_.begin(), fresh);
    if (kept_.size() > most_prefills) kept_.resize(most_prefills);
}

void KeptPrefills::drop_closed(const Session& session) {
    std::erase_if(kept_, [&](const Kept& kept) { return !session.document(kept.document); });
}

}  // namespace kvscope::gui
