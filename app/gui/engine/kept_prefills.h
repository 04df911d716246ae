#pragma once

#include <memory>
#include <vector>

#include "app/gui/session/engine_session.h"

namespace kvscope::gui {

class Session;

/// The two most recent prefills. Each belongs to all prompts with the same context. UI thread only.
class KeptPrefills {
 public:
    [[nodiscard]] std::shared_ptr<const PrefillInMemory> find(int document, int prompt) const;
    void keep(int document, const std::vector<int>& prompts, std::shared_ptr<const PrefillInMemory> prefill);
    void drop_closed(const Session& session);

 private:
    struct Kept {
        int document = -1;
        std::vector<int> prompts;
        std::shared_ptr<const PrefillInMemory> prefill;
        [[nodiscard]] bool is_of(int prompt) const;
    };
    std::vector<Kept> kept_;  ///< newest first
};

}  // namespace kvscope::gui
