#include "app/gui/session/model_names.h"

#include "app/gui/session/document.h"
#include "common/bounded_json.h"
#include "common/json.h"

namespace kvscope::gui {

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
