#include "app/gui/engine/token_counter.h"

#include <chrono>

#include "common/stopped.h"
#include "engine/prefill/prompt.h"

namespace kvscope::gui {
namespace {

constexpr auto rest = std::chrono::milliseconds(150);

TokenCount count(const RunRequest& request, const engine::Model& model, const std::stop_token& stop) {
    TokenCount found;
    found.context_length = model.config().context_length;
    found.shape = model.transformer().shape();
    found.model_fingerprint = model.fingerprint();
    found.token_bytes = 2.0 * found.shape->n_layers * found.shape->n_kv_heads * found.shape->head_dim *
                        static_cast<double>(kernels::size_of(model.transformer().dtype()));
    try {
        auto questions = request.asked_questions();
        if (questions.empty()) questions.emplace_back();
        for (const auto& question : questions) {
            const engine::PromptOptions options{.name = request.name,
                                                .use_template = request.options.use_template,
                                                .query_aware = request.options.query_aware,
                                                .may_exceed = true,
                                                .parse_special = request.options.parse_special,
                                                .stop = stop};
            const auto prompt = engine::tokenize_prompt(model, request.context, question, options);
            const auto remarks = engine::remarks_on_tokens(model, {&prompt, 1}, request.options.parse_special, stop);
            if (found.remark.empty() && !remarks.empty()) found.remark = remarks.back();
            if (static_cast<int64_t>(prompt.ids.size()) <= found.n_tokens) continue;
            found.n_tokens = static_cast<int64_t>(prompt.ids.size());
            found.n_visible = prompt.n_visible();
        }
    } catch (const Stopped&) {
        throw;
    } catch (const std::exception& error) {
        found.error = error.what();
    }
    return found;
}

bool is_same_text(const RunRequest& a, const RunRequest& b) {
    return a.context == b.context && a.questions == b.questions && a.options.use_template == b.options.use_template &&
           a.options.query_aware == b.options.query_aware && a.options.parse_special == b.options.parse_special;
}

}  // namespace

TokenCounter::TokenCounter(std::function<void()> on_count)
    : on_count_(std::move(on_count)), thread_([this] { work(); }) {}

TokenCounter::~TokenCounter() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        stop_.request_stop();
    }
    changed_.notify_all();
    thread_.join();
}

std::optional<TokenCount> TokenCounter::ask(const RunRequest& request,
                                            const std::shared_ptr<const engine::Model>& model) {
    const std::lock_guard lock(mutex_);
    if (!model) return std::nullopt;
    if (asked_.model != model || !is_same_text(asked_.request, request)) {
        asked_ = {request, model};
        wanted_ = asked_;
        stop_.request_stop();
        changed_.notify_all();
    }
    return count_;
}

void TokenCounter::work() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (!wanted_) {
            changed_.wait(lock);
            continue;
        }
        const Text text = std::move(*wanted_);
        wanted_.reset();
        stop_ = std::stop_source();
        const std::stop_token stop = stop_.get_token();
        if (changed_.wait_for(lock, rest, [this] { return stopping_ || wanted_.has_value(); })) continue;
        lock.unlock();
        std::optional<TokenCount> found;
        try {
            found = count(text.request, *text.model, stop);
        } catch (const Stopped&) {
        }
        lock.lock();
        if (!found) continue;
        count_ = found;
        on_count_();
    }
}

}  // namespace kvscope::gui
