#pragma once

#include <catch2/catch.hpp>
#include <functional>

#include "app/gui/session/engine_session.h"
#include "app/gui/view_data/run_form.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/session_with_engine.h"
#include "tests/gui/small_model.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui::testing {

/// The Run view as the only view, with the small model.
struct DrivenForm {
    trace::sample::TemporaryFolder folder;
    DrivenApp driven{options()};

    [[nodiscard]] static AppOptions options() {
        AppOptions options;
        options.view = "run";
        options.traces = {small_model};
        return options;
    }

    DrivenForm() {
        driven.app().dismiss_start();
        const auto& engine = *driven.app().engine();
        REQUIRE(driven.draw_until([&] { return engine.status().model_path == small_model; }, patience));
        driven.settle();
    }

    [[nodiscard]] View& view() { return *driven.app().views()[0]->view; }
    [[nodiscard]] nlohmann::json state() {
        nlohmann::json now;
        view().save(now);
        return now;
    }
    void fill(const RunForm& form) { view().load(form.to_json()); }
    void drive(const std::function<void(ImGuiTestContext&)>& steps) {
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef("//run-1");
            steps(c);
            c.Yield(2);
        });
    }
    [[nodiscard]] bool wait_for_engine() {
        return driven.draw_until([&] { return !driven.app().engine()->status().busy(); }, patience);
    }
};

/// A form with a short prompt, H2O and one budget.
[[nodiscard]] inline RunForm small_form(const fs::path& output) {
    RunForm form;
    for (PolicyRow& row : form.rows) row.ticked = row.spec.definition->name == "h2o";
    form.request.context =
        "The quick brown fox jumps over the lazy dog, and then the other fox finds the inner garden.";
    form.request.budgets = "16";
    form.request.options.n_new = 4;
    form.request.output = output;
    return form;
}

}  // namespace kvscope::gui::testing
