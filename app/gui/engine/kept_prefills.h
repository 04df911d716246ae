#pragma once

#include <memory>
#include <vector>

#include "app/gui/session/engine_session.h"

namespace kvscope::gui {

class Session;

/// The last two prefills, each of the prompts that share its context. The window's thread.
class KeptPrefills {
 public:
    /// nullptr where it is not in memory.
    std::shared_ptr<const PrefillInMemory> find(int document, int prompt) const;
    /// Takes the place of an earlier one of the same prompts.
    void keep(int document, const std::vector<int>& prompts, std::shared_ptr<const PrefillInMemory> prefill);
    void drop_closed(const Session& session);

 private:
    struct Kept {
        int document;
        std::vector<int> prompts;
        std::shared_ptr<const PrefillInMemory> prefill;
        bool is_of(int prompt) const;
    };
    std::vector<Kept> kept_;  ///< newest first
};

}  // namespace kvscope::gui
