#include "app/gui/engine/run_caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/gui/session/session.h"

namespace kvscope::gui {

std::shared_ptr<engine::Conversation> keep_model_with_cache(std::shared_ptr<engine::Conversation> cache,
                                                            std::shared_ptr<const engine::Model> model) {
    struct Both {
        std::shared_ptr<const engine::Model> model;
        std::shared_ptr<engine::Conversation> cache;  // destroyed before the model
    };
    if (!cache) return nullptr;
    const auto both = std::make_shared<Both>(Both{std::move(model), std::move(cache)});
    return {both, both->cache.get()};
}
namespace {

constexpr std::ptrdiff_t most_made_again = 32;

}  // namespace

std::string RunCaches::name_of(const Document& document, const RunKey& run) {
    const trace::Reader& reader = *document.reader();
    const int at = document.place_of(run.prompt, run.run).value();
    if (reader.is_in_file(run.prompt, at)) return fmt::format("{}", reader.run_number(run.prompt, at));
    return document.is_what_if(run.run) ? document.what_if_stamp(run.run) : document.run_stamp(run.prompt, run.run);
}

std::shared_ptr<engine::Conversation> RunCaches::find(const Session& session, const RunKey& run) const {
    if (!session.exists(run)) return nullptr;
    const std::string name = name_of(*session.document(run), run);
    for (const Kept& kept : kept_)
        if (kept.document == run.document && kept.prompt == run.prompt && kept.name == name) return kept.cache;
    return nullptr;
}

void RunCaches::keep_job(int document, const std::vector<int>& prompts,
                         const std::vector<std::shared_ptr<engine::Conversation>>& of_runs) {
    std::erase_if(kept_, [](const Kept& kept) { return kept.of_job; });
    for (const int prompt : prompts) {
        for (size_t run = 0; run < of_runs.size(); ++run) {
            if (of_runs[run]) kept_.push_back({document, prompt, fmt::format("{}", run), of_runs[run], true});
        }
    }
}

void RunCaches::keep(int document, int prompt, const std::string& name, std::shared_ptr<engine::Conversation> cache) {
    std::erase_if(kept_, [&](const Kept& kept) {
        return kept.document == document && kept.prompt == prompt && kept.name == name;
    });
    kept_.push_back({document, prompt, name, std::move(cache), false});
    const auto is_made_again = [](const Kept& kept) { return !kept.of_job; };
    if (std::ranges::count_if(kept_, is_made_again) > most_made_again)
        kept_.erase(std::ranges::find_if(kept_, is_made_again));
}

void RunCaches::drop_closed(const Session& session) {
    std::erase_if(kept_, [&](const Kept& kept) { return !session.document(kept.document); });
}

}  // namespace kvscope::gui
