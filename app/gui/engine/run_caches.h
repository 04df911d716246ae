#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/gui/session/selection.h"
#include "engine/decode/conversation.h"

namespace kvscope::gui {

class Document;
class Session;

/// Returns a pointer to the cache that also keeps the model alive.
[[nodiscard]] std::shared_ptr<engine::Conversation> keep_model_with_cache(std::shared_ptr<engine::Conversation> cache,
                                                                          std::shared_ptr<const engine::Model> model);

/// Caches for further questions: caches of the latest job and recently rebuilt caches. UI thread only.
class RunCaches {
 public:
    /// Returns a name that identifies the version of a run. Requires an existing run.
    [[nodiscard]] static std::string name_of(const Document& document, const RunKey& run);

    [[nodiscard]] std::shared_ptr<engine::Conversation> find(const Session& session, const RunKey& run) const;
    /// Replaces the caches of the previous job. @param of_runs caches, indexed by the run's number in the trace
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
