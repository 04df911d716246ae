#ifdef KVSCOPE_WITH_ENGINE

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

#include "common/json.h"
#include "engine/model/device_selection.h"
#include "kernels/types.h"
#include "tests/gui/session_with_engine.h"
#include "tests/gui/small_model.h"

namespace kvscope::gui::testing {
namespace {

/// @param each called after every frame
template <class Each>
void until_idle(SessionWithEngine& gui, const Each& each) {
    for (int i = 0; i < 300'000 && gui.engine->status().busy(); ++i) {
        gui.frame();
        each();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    REQUIRE(!gui.engine->status().busy());
    gui.frame();
}

/// Makes the run long enough to be inspected or cancelled.
void make_long(RunRequest& request) {
    request.options.n_new = 60;
    request.options.ignore_eos = true;
}

}  // namespace

TEST_CASE("several questions are prompts of one trace, and each can be viewed while it is answered") {
    SessionWithEngine gui("runs");
    const bool aware = GENERATE(false, true);
    CAPTURE(aware);
    auto request = gui.request({"snapkv:window=8", "h2o"}, "16,32");
    request.questions = {"Who is thirsty?", "  ", "How many are there in winter?", "Where is the hen?"};
    request.options.query_aware = aware;
    make_long(request);
    std::set<std::string> answered;
    std::string selected;
    bool saw_pending = false;
    gui.engine->run(request);
    until_idle(gui, [&] {
        if (!gui.engine->partial_answers().empty()) answered.insert(gui.engine->partial_answers()[0].question);
        if (gui.session.documents().empty()) return;
        Document& document = *gui.session.documents()[0];
        if (document.reader()->n_prompts() < 2 || document.reader()->n_runs(1) < 4) return;
        saw_pending = saw_pending || document.reader()->n_runs(1) > document.file()->n_runs(1);
        if (document.prompt == 1) return;
        gui.session.show_prompt(document, 1);
        gui.session.selection.select_run(document.key_of(1, 3));
        selected = gui.session.attributes(gui.session.cursor().run).label;
    });
    for (const auto& error : gui.errors) UNSCOPED_INFO(error);
    REQUIRE(gui.errors.empty());
    CHECK(saw_pending);
    CHECK(answered.size() == 3);
    REQUIRE(gui.session.documents().size() == 1);
    const Document& document = *gui.session.documents()[0];
    const trace::Reader& reader = *document.reader();
    CHECK(reader.complete());
    REQUIRE(reader.n_prompts() == 3);
    const auto asked = request.asked_questions();
    for (int prompt = 0; prompt < 3; ++prompt) {
        CHECK(reader.prompt(prompt).question == asked[static_cast<size_t>(prompt)]);
        CHECK(reader.n_runs(prompt) == 5);
        CHECK(document.file()->n_runs(prompt) == 5);
        CHECK(reader.prompt(prompt).context_of.has_value() == (!aware && prompt > 0));
        // Prompts with a common context share a prefill and its caches. Otherwise the caches of the last prompt are
        // kept.
        const bool in_memory = !aware || prompt == 2;
        CHECK((gui.engine->prefill(document.id(), prompt) != nullptr) == in_memory);
        CHECK(gui.engine->has_cache(document.key_of(prompt, 1)) == in_memory);
    }
    CHECK(document.prompt == 1);
    REQUIRE(gui.session.cursor().run.prompt == 1);
    CHECK(gui.session.attributes(gui.session.cursor().run).label == selected);
}

TEST_CASE("of many runs, those with the largest budget and the selected run are shown at the end") {
    SessionWithEngine gui("runs");
    const bool has_selected = GENERATE(false, true);
    CAPTURE(has_selected);
    auto request = gui.request({"snapkv:window=8", "h2o", "streaming-llm", "random", "snapkv:window=4"}, "16,32");
    make_long(request);
    RunKey chosen;
    gui.engine->run(request);
    until_idle(gui, [&] {
        if (chosen.valid() || !gui.session.cursor().run.valid()) return;
        if (has_selected) gui.session.selection.select_token(5);
        chosen = gui.session.cursor().run;
    });
    REQUIRE(gui.errors.empty());
    REQUIRE(chosen.valid());
    REQUIRE(gui.session.attributes(chosen).budget == 16);
    CHECK((gui.session.cursor().run == chosen) == has_selected);
    CHECK(gui.session.is_visible(chosen) == has_selected);
    CHECK(gui.session.visible_runs().size() == (has_selected ? 6 : 5));
    CHECK(std::any_of(gui.notices.begin(), gui.notices.end(), [](const std::string& notice) {
        return notice.find("runs with the largest budget that drops entries are shown") != std::string::npos;
    }));
}

TEST_CASE("isolated runs appear one by one and leave no cache in memory") {
    SessionWithEngine gui("runs");
    auto request = gui.request({"snapkv:window=8", "h2o"}, "32");
    request.questions = {"Who is thirsty?", "Where is the hen?"};
    request.options.query_aware = false;
    request.options.isolated = true;
    make_long(request);
    bool saw_pending = false;
    gui.engine->run(request);
    until_idle(gui, [&] {
        if (gui.session.documents().empty()) return;
        const Document& document = *gui.session.documents()[0];
        for (int prompt = 0; prompt < document.reader()->n_prompts(); ++prompt)
            saw_pending = saw_pending || document.reader()->n_runs(prompt) > document.file()->n_runs(prompt);
    });
    for (const auto& error : gui.errors) UNSCOPED_INFO(error);
    REQUIRE(gui.errors.empty());
    CHECK(saw_pending);
    const Document& document = *gui.session.documents()[0];
    REQUIRE(document.reader()->complete());
    REQUIRE(document.reader()->n_prompts() == 2);
    for (int prompt = 0; prompt < 2; ++prompt) {
        REQUIRE(document.reader()->n_runs(prompt) == 3);
        CHECK(document.reader()->run(prompt, 1).mode == trace::schema::run::mode_isolated);
        CHECK(gui.engine->prefill(document.id(), prompt) == nullptr);
        CHECK(!gui.engine->has_cache(document.key_of(prompt, 1)));
    }
}

TEST_CASE("a run has the requested options and the requested number type") {
    SessionWithEngine gui("runs");
    const std::string usual = kernels::name_of(engine::dtype_from_name("auto"));
    for (const std::string dtype : {"f32", "bf16", "auto"}) {
        CAPTURE(dtype);
        auto request = gui.request({"random"}, "32");
        request.options = {0.5, 0.75, 7, 9, dtype, "cpu", false, true, 12};
        request.options.n_new = 4;
        request.output = gui.folder / (dtype + ".h5");
        gui.engine->run(request);
        gui.until_idle();
        REQUIRE(gui.errors.empty());
        const auto recipe = nlohmann::json::parse(gui.session.documents().back()->file()->recipe_json());
        CHECK(recipe["dtype"] == (dtype == "auto" ? usual : dtype));
        CHECK(recipe["temperature"] == 0.5);
        CHECK(recipe["top_p"] == 0.75);
        CHECK(recipe["sampling_seed"] == 7);
        CHECK(recipe["seed"] == 9);
        CHECK(recipe["ignore_eos"] == true);
        CHECK(recipe["window"] == 12);
        CHECK(recipe["mode"] == "shared");
    }
    auto again = gui.request({"random"}, "16");
    again.output = gui.folder / "f32.h5";
    gui.engine->run(again);
    gui.until_idle();
    CHECK(gui.errors.size() == 1);  // f32.h5 contains other runs
    again.force = true;
    gui.engine->run(again);
    gui.until_idle();
    CAPTURE(gui.errors);
    CHECK(gui.errors.size() == 1);
    CHECK(gui.session.documents()[0]->file()->run(0, 1).budget == 16);
}

TEST_CASE("after a model fails to load, a run does not use the previous model") {
    SessionWithEngine gui("runs");
    gui.engine->load_model(small_model);
    gui.until_idle();
    auto request = gui.request({"h2o"}, "16");
    request.model.clear();
    gui.engine->load_model(gui.folder / "nothing.gguf");
    gui.engine->run(request);
    gui.until_idle();
    REQUIRE(gui.errors.size() == 2);
    for (const auto& error : gui.errors) CHECK(error.find("nothing.gguf") != std::string::npos);
    CHECK(gui.engine->status().model_error.find("nothing.gguf") != std::string::npos);
    CHECK(gui.engine->status().model_path == small_model);
    CHECK(gui.session.documents().empty());
    CHECK(!fs::exists(gui.folder / "run.h5.part"));
    gui.engine->load_model(small_model);
    gui.engine->run(request);
    gui.until_idle();
    CHECK(gui.errors.size() == 2);
    CHECK(gui.engine->status().model_error.empty());
    CHECK(gui.session.documents().size() == 1);
}

TEST_CASE("a run that is stopped before any part is finished leaves no unfinished trace") {
    SessionWithEngine gui("runs");
    auto request = gui.request({"snapkv:window=8"}, "16");
    const std::string once = request.context;
    while (request.context.size() + once.size() < 590) request.context += " " + once;
    const fs::path part = gui.folder / "run.h5.part";
    gui.engine->run(request);
    while (gui.engine->status().busy() && !fs::exists(part)) {
    }
    gui.engine->cancel();
    gui.until_idle();
    for (const auto& error : gui.errors) UNSCOPED_INFO(error);
    CHECK(gui.errors.empty());
    gui.engine.reset();  // ends the paused run
    // On a fast machine, the prompt has been read and there is a document.
    CHECK(fs::exists(part) == !gui.session.documents().empty());
}

TEST_CASE("a run that began without spectra continues without them, even if they cost no time now") {
    SessionWithEngine gui("runs");
    auto request = gui.request({"snapkv:window=8", "h2o"}, "16");
    request.questions = {"Who is thirsty?", "Where is the hen?"};
    make_long(request);
    request.spectra = false;  // as for a model where they take long
    gui.engine->run(request);
    until_idle(gui, [&] {
        if (!gui.session.documents().empty()) gui.engine->cancel();
    });
    REQUIRE(gui.errors.empty());
    REQUIRE(fs::exists(gui.folder / "run.h5.part"));
    REQUIRE(!fs::exists(gui.folder / "run.h5"));
    request.spectra.reset();
    gui.engine->run(request);
    gui.until_idle();
    for (const auto& error : gui.errors) UNSCOPED_INFO(error);
    REQUIRE(gui.errors.empty());
    const auto& reader = *gui.session.documents()[0]->reader();
    CHECK(reader.complete());
    CHECK(!reader.has(trace::Place::of_model(), trace::schema::model::spectrum_q));
    gui.engine->run(request);  // nothing to do and no error
    gui.until_idle();
    CHECK(gui.errors.empty());
}

TEST_CASE("a run with more policies extends the complete trace at its output, and the document stays open") {
    SessionWithEngine gui("runs");
    auto request = gui.request({"snapkv:window=8"}, "16");
    gui.engine->run(request);
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    REQUIRE(gui.session.documents().size() == 1);
    const int document = gui.session.documents()[0]->id();
    const auto before = gui.session.documents()[0]->reader()->run_record(0, 1);
    request.policies = {"snapkv:window=8", "h2o"};
    gui.engine->run(request);
    gui.until_idle();
    for (const auto& error : gui.errors) UNSCOPED_INFO(error);
    REQUIRE(gui.errors.empty());
    REQUIRE(gui.session.documents().size() == 1);
    CHECK(gui.session.documents()[0]->id() == document);
    const auto& reader = *gui.session.documents()[0]->reader();
    CHECK(reader.complete());
    REQUIRE(reader.n_runs(0) == 3);
    CHECK(reader.run(0, 2).policy == "h2o");
    const auto after = reader.run_record(0, 1);
    CHECK(after.kept_indices == before.kept_indices);
    CHECK(after.select_s == before.select_s);  // was not computed again
    CHECK(!fs::exists(gui.folder / "run.h5.part"));
}

}  // namespace kvscope::gui::testing

#endif
