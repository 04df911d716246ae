#include "app/gui/session/renaming.h"

#include <fmt/format.h>

#include "analysis/runs/run_style.h"
#include "app/gui/session/document.h"
#include "app/gui/session/session.h"
#include "common/bounded_json.h"
#include "common/json.h"

namespace kvscope::gui {

namespace {

bool are_alike(const trace::RunAttributes& a, const trace::RunAttributes& b) {
    return a.policy == b.policy && a.parameters_json == b.parameters_json && a.seed == b.seed &&
           analysis::recorded_or_default_label(a) == analysis::recorded_or_default_label(b) &&
           analysis::budget_sort_key(a) == analysis::budget_sort_key(b);
}

}  // namespace

bool can_rename_run(const Session& session, const RunKey& run) {
    return session.exists(run) && session.document(run)->can_be_renamed(run.prompt, run.run);
}

std::vector<RunKey> alike_runs_in_other_prompts(const Session& session, const RunKey& run) {
    std::vector<RunKey> alike;
    if (!session.exists(run)) return alike;
    const Document& document = *session.document(run);
    for (int prompt = 0; prompt < document.reader()->n_prompts(); ++prompt) {
        if (prompt == run.prompt) continue;
        for (const RunKey& other : document.keys(prompt))
            if (can_rename_run(session, other) && are_alike(session.attributes(other), session.attributes(run)))
                alike.push_back(other);
    }
    return alike;
}

std::string label_problem(const Session& session, const RunKey& run, const std::string& label) {
    if (label.empty() || !session.exists(run)) return {};
    if (!can_be_label(label)) return "a label needs more than spaces and must not contain ##";
    for (const RunKey& other : session.document(run)->keys(run.prompt)) {
        const auto& attributes = session.attributes(other);
        if (other == run) continue;
        if (analysis::run_label(attributes) == label || analysis::recorded_or_default_label(attributes) == label)
            return fmt::format("another run has this label: {}", analysis::recorded_or_default_label(attributes));
    }
    return {};
}

void set_run_label(Session& session, const RunKey& run, const std::string& label, bool in_all_prompts) {
    std::vector<RunKey> all = in_all_prompts ? alike_runs_in_other_prompts(session, run) : std::vector<RunKey>();
    all.push_back(run);
    for (const RunKey& key : all)
        if (can_rename_run(session, key) && label_problem(session, key, label).empty())
            session.document(key)->give_label(key.prompt, key.run, label);
}

std::string displayed_model_name(const ModelNames& names, const trace::ModelAttributes& model) {
    const auto chosen = names.find(model.fingerprint);
    return chosen == names.end() ? model.name : chosen->second;
}

std::vector<std::string> recorded_model_names(const trace::ModelAttributes& model) {
    std::vector<std::string> names{model.name};
    const auto config = bounded_json::parse_or_discard(model.config_json);
    const auto metadata = config.is_object() ? config.find("_name_or_path") : config.end();
    if (config.is_object() && metadata != config.end() && metadata->is_string() && *metadata != model.name)
        names.push_back(metadata->get<std::string>());
    std::erase(names, "");
    return names;
}

void set_user_model_name(ModelNames& names, const trace::ModelAttributes& model, const std::string& name) {
    if (name == model.name || !can_be_label(name))
        names.erase(model.fingerprint);
    else
        names[model.fingerprint] = name;
}

}  // namespace kvscope::gui
