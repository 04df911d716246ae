#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "app/gui/session/engine_session.h"

namespace kvscope::engine {
class Model;
}

namespace kvscope::gui {

/// Counts tokens on a background thread once the text has not changed for a moment.
class TokenCounter {
 public:
    explicit TokenCounter(std::function<void()> on_count);
    ~TokenCounter();

    [[nodiscard]] std::optional<TokenCount> ask(const RunRequest& request,
                                                const std::shared_ptr<const engine::Model>& model);

 private:
    struct Text {
        RunRequest request;
        std::vector<std::string> stamps;  ///< of the request's sources
        std::shared_ptr<const engine::Model> model;
    };
    void work();

    std::function<void()> on_count_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Text> wanted_;
    Text asked_;  ///< last requested text
    std::optional<TokenCount> count_;
    std::stop_source stop_;  ///< stops counting an outdated text, because a template or tokenizer may run for seconds
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace kvscope::gui
