#include "app/gui/engine/token_counter.h"

#include <chrono>
#include <utility>

#include "app/gui/engine/jobs_to_run.h"
#include "app/gui/view_data/run_form.h"
#include "common/stopped.h"
#include "engine/common/engine_error.h"
#include "engine/prefill/prompt.h"

namespace kvscope::gui {
namespace {

constexpr auto rest = std::chrono::milliseconds(150);

void add(TokenCount& found, const program::PromptText& text, const std::string& question, const RunOptions& options,
         const engine::Model& model, const std::stop_token& stop) {
    engine::Prompt prompt;
    try {
        prompt = engine::tokenize_prompt(model, text.context, question,
                                         {.name = text.name,
                                          .use_template = options.use_template,
                                          .query_aware = options.query_aware,
                                          .origin = text.origin,
                                          .may_exceed = true,
                                          .parse_special = options.parse_special,
                                          .stop = stop});
    } catch (const engine::UsageError& error) {
        found.left_out.emplace_back(error.what());
        return;
    }
    if (found.remark.empty()) {
        const auto remarks = engine::remarks_on_tokens(model, {&prompt, 1}, options.parse_special, stop);
        if (!remarks.empty()) found.remark = remarks.back();
    }
    found.lengths.push_back(static_cast<int64_t>(prompt.ids.size()));
    if (found.lengths.back() <= found.n_tokens) return;
    found.n_tokens = found.lengths.back();
    found.n_visible = prompt.n_visible();
}

TokenCount count(const RunRequest& request, const engine::Model& model, const std::stop_token& stop) {
    TokenCount found;
    found.context_length = model.config().context_length;
    found.shape = model.transformer().shape();
    found.model_fingerprint = model.fingerprint();
    found.token_bytes = 2.0 * found.shape->n_layers * found.shape->n_kv_heads * found.shape->head_dim *
                        static_cast<double>(kernels::size_of(model.transformer().dtype()));
    try {
        program::PromptsFound all = find_prompts(request);
        for (auto& text : all.prompts) {
            if (text.questions.empty()) text.questions.emplace_back();
            for (const std::string& question : text.questions) add(found, text, question, request.options, model, stop);
        }
        if (found.lengths.empty() && !found.left_out.empty()) found.error = found.left_out.front();
    } catch (const Stopped&) {
        throw;
    } catch (const std::exception& error) {
        found.error = error.what();
    }
    return found;
}

bool is_same_text(const RunRequest& a, const RunRequest& b) {
    return a.context == b.context && a.sources == b.sources && a.questions == b.questions &&
           a.options.use_template == b.options.use_template && a.options.query_aware == b.options.query_aware &&
           a.options.parse_special == b.options.parse_special;
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
    std::vector<std::string> stamps;
    for (const auto& source : request.sources) stamps.push_back(stamp_of_file(source));
    if (asked_.model != model || asked_.stamps != stamps || !is_same_text(asked_.request, request)) {
        if (asked_.request.sources != request.sources) count_.reset();
        asked_ = {request, std::move(stamps), model};
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
