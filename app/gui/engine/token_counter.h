#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "app/gui/session/engine_session.h"

namespace kvscope::engine {
class Model;
}

namespace kvscope::gui {

/// Counts tokens while a person types, on a small thread of its own: a text is counted once it has rested for a moment,
/// and the newest text wins.
class TokenCounter {
 public:
    explicit TokenCounter(std::function<void()> on_count);
    ~TokenCounter();
    TokenCounter(const TokenCounter&) = delete;
    TokenCounter& operator=(const TokenCounter&) = delete;

    /// The newest count there is; asks for this text's where it is another than last time.
    std::optional<TokenCount> ask(const RunRequest& request, const std::shared_ptr<const engine::Model>& model);

 private:
    struct Text {
        RunRequest request;
        std::shared_ptr<const engine::Model> model;
    };
    void work();

    std::function<void()> on_count_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Text> wanted_;
    Text asked_;  ///< the newest that was ever asked for
    std::optional<TokenCount> count_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace kvscope::gui
