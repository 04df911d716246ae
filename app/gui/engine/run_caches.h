#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/gui/session/run_selection.h"
#include "engine/inference/conversation.h"

namespace kvscope::gui {

class Document;
class Session;

/// A cache together with the model that it reads: as long as the one is there, so is the other.
std::shared_ptr<engine::Conversation> with_model(std::shared_ptr<engine::Conversation> cache,
                                                 std::shared_ptr<const engine::Model> model);

/// Caches of finished runs that can be asked more: all of the latest job, and the latest that were made again. A
/// what-if's goes with the settings that it was made with. The window's thread.
class RunCaches {
 public:
    /// What a run is called here as long as it stays the same. The run has to exist.
    static std::string name_of(const Document& document, const RunKey& run);

    /// nullptr where it is not in memory.
    std::shared_ptr<engine::Conversation> find(const Session& session, const RunKey& run) const;
    /// Takes the place of the last job's. @param prompts that share the context @param of_runs by number in the trace
    void keep_job(int document, const std::vector<int>& prompts,
                  const std::vector<std::shared_ptr<engine::Conversation>>& of_runs);
    void keep(int document, int prompt, const std::string& name, std::shared_ptr<engine::Conversation> cache);
    void clear() { kept_.clear(); }
    void drop_closed(const Session& session);

 private:
    struct Kept {
        int document;
        int prompt;
        std::string name;
        std::shared_ptr<engine::Conversation> cache;
        bool of_job;
    };
    std::vector<Kept> kept_;  ///< newest last
};

}  // namespace kvscope::gui
