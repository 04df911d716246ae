#include <catch2/catch.hpp>

#include "app/gui/session/renaming.h"
#include "app/gui/session/settings.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui {

TEST_CASE("a model has the name that the user has chosen for its fingerprint, in every trace") {
    trace::ModelAttributes model;
    model.name = "SmolLM2-135M-Instruct.Q4_1";
    model.fingerprint = "69b1";
    model.config_json = R"({"_name_or_path": "Smollm2 135M 8k Lc100K Mix1 Ep2"})";
    ModelNames names;
    CHECK(displayed_model_name(names, model) == model.name);
    CHECK(recorded_model_names(model) == std::vector<std::string>{model.name, "Smollm2 135M 8k Lc100K Mix1 Ep2"});
    set_user_model_name(names, model, "SmolLM2");
    CHECK(displayed_model_name(names, model) == "SmolLM2");
    trace::ModelAttributes other = model;
    other.fingerprint = "70aa";
    CHECK(displayed_model_name(names, other) == model.name);
    set_user_model_name(names, model, model.name);
    CHECK(names.empty());
    set_user_model_name(names, model, "SmolLM2");
    for (const char* nothing : {"", "  ", "a##b"}) {
        set_user_model_name(names, model, "SmolLM2");
        set_user_model_name(names, model, nothing);
        CHECK(names.empty());
    }
    for (const char* odd : {"", "[]", "{", "7", R"({"_name_or_path": 7})", R"({"_name_or_path": ""})"}) {
        model.config_json = odd;
        CHECK(recorded_model_names(model) == std::vector<std::string>{model.name});
    }
}

TEST_CASE("names of models are saved in the settings, and names from two processes are merged") {
    const trace::sample::TemporaryFolder folder;
    const std::filesystem::path file = folder / "settings.json";
    const Settings before = load_settings(file);
    Settings one = before, two = before;
    one.model_names = {{"a", "first"}, {"b", "both"}};
    two.model_names = {{"c", "third"}};
    save_settings(one, file, &before);
    save_settings(two, file, &before);
    CHECK(two.model_names.size() == 3);
    Settings later = load_settings(file);
    CHECK(later.model_names == two.model_names);
    const Settings then = later;
    later.model_names.erase("b");
    save_settings(later, file, &then);
    CHECK(load_settings(file).model_names == std::map<std::string, std::string>{{"a", "first"}, {"c", "third"}});
}

}  // namespace kvscope::gui
