#ifdef KVSCOPE_WITH_ENGINE

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "app/gui/session/engine_session.h"
#include "app/gui/session/settings.h"
#include "app/gui/view_data/run_form.h"
#include "app/program/input_files.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/small_model.h"
#include "tests/skip.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui::testing {
namespace {

namespace fs = std::filesystem;

/// Gives the test its own working folder.
struct WorkingFolder {
    trace::sample::TemporaryFolder folder;
    fs::path before = fs::current_path();
    WorkingFolder() { fs::current_path(folder.path()); }
    ~WorkingFolder() { fs::current_path(before); }
};

bool wait_for_engine(DrivenApp& driven) {
    return driven.draw_until([&] { return !driven.app().engine()->status().busy(); }, patience);
}

nlohmann::json state_of(DrivenApp& driven, const std::string& id) {
    nlohmann::json state = nlohmann::json::object();
    for (const auto& open : driven.app().views()) {
        if (open->id() == id) open->view->save(state);
    }
    return state;
}

std::string beginning(const fs::path& path, size_t length) {
    std::ifstream file(path, std::ios::binary);
    std::string text(length, '\0');
    file.read(text.data(), static_cast<std::streamsize>(length));
    return text;
}

}  // namespace

TEST_CASE("a user gets from the first card to an exported figure with the default model") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const WorkingFolder here;
    AppOptions options;
    options.layout = "explore";
    DrivenApp driven(options);
    Session& session = driven.session();

    // The demo: results appear while the engine works.
    driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//Start/**/##Run the demo"); });
    REQUIRE(driven.draw_until([&] { return !session.documents().empty(); }, patience));
    CHECK(driven.app().engine()->status().busy());
    REQUIRE(wait_for_engine(driven));
    driven.settle();
    CHECK(driven.app().engine()->status().error.empty());
    REQUIRE(session.documents().size() == 1);
    const Document& demo = *session.documents()[0];
    CHECK(demo.path().filename() == "demo.h5");
    CHECK(demo.reader()->complete());
    REQUIRE(demo.reader()->n_runs(0) == 2 * 12 + 1);
    CHECK(fs::exists(here.folder / "kvscope-demo/demo.h5"));
    CHECK(!fs::exists(here.folder / "kvscope-demo/demo.h5.part"));
    CHECK(session.visible_runs().size() == 12);
    CHECK(session.is_visible(session.cursor().run));

    // Opens a layer's heads and returns.
    driven.drive([&](ImGuiTestContext& c) {
        const ImGuiWindow* maps = c.WindowInfo("//retention-1/maps").Window;
        IM_CHECK(maps != nullptr);
        c.MouseMoveToPos({maps->Rect().GetCenter().x, maps->Rect().Min.y + 50});
        c.MouseDoubleClick();
        c.Yield(3);
    });
    driven.settle();
    CHECK(state_of(driven, "retention-1").at("layer").get<int>() >= 0);
    CHECK(session.cursor().has_tokens());
    driven.drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_Backspace); });
    CHECK(state_of(driven, "retention-1").at("layer") == -1);

    // The budget's slider makes a run that keeps this number of entries.
    int snapkv = 0;
    for (int run = 0; run < demo.reader()->n_runs(0); ++run) {
        const auto& attributes = demo.reader()->run(0, run);
        if (attributes.policy == "snapkv" && attributes.budget == 256) snapkv = run;
    }
    session.selection.select_run(demo.key_of(0, snapkv));
    driven.settle();
    driven.drive([](ImGuiTestContext& c) { c.ItemInputValue("//what_if-1/**/##budget number", 100); });
    REQUIRE(driven.draw_until([&] { return demo.reader()->n_runs(0) == 26; }, patience));
    driven.settle();
    const int added = demo.reader()->n_runs(0) - 1;
    CHECK(demo.reader()->run(0, added).policy == "snapkv");
    CHECK(demo.reader()->run(0, added).budget == 100);
    // The new run is selected and compared with its source.
    CHECK(session.cursor().run == demo.key_of(0, added));
    const auto order = session.visible_runs();
    const auto source = std::find(order.begin(), order.end(), demo.key_of(0, snapkv));
    REQUIRE(source != order.end());
    REQUIRE(source + 1 != order.end());
    CHECK(*(source + 1) == demo.key_of(0, added));
    const auto kept = demo.reader()->kept(0, added);
    for (size_t layer = 0; layer < kept->n_layers; ++layer) {
        for (size_t row = 0; row < kept->n_rows; ++row) CHECK(kept->count(layer, row) == 100);
    }

    // Decoding gives an answer and its divergence. Its cache and others then answer a further question.
    driven.drive([](ImGuiTestContext& c) { c.ItemClick("//what_if-1/**/Decode"); });
    const RunKey what_if = demo.key_of(0, added);
    REQUIRE(driven.draw_until([&] { return !session.attributes(what_if).output_text.empty(); }, patience));
    CHECK(demo.reader()->has(trace::Place::of_run(0, added), trace::schema::run::step_kl));
    CHECK(demo.reader()->kept(0, added)->indices == kept->indices);
    driven.drive([](ImGuiTestContext& c) {
        c.WindowFocus("//answers-1");
        c.ItemInput("//answers-1/**/##answers question");
        c.KeyCharsReplace("Who wrote the log book?");
        c.ItemClick("//answers-1/**/Ask##answers");
        c.ItemInput("//answers-1/**/##answers question");
        c.KeyCharsReplace("What is the name of the ship?");
        c.ItemClick("//answers-1/**/###ask all");
    });
    const auto& further = demo.further_answers();
    const size_t n_asked = 1 + session.visible_runs(true).size();
    REQUIRE(further.size() == n_asked);
    CHECK(demo.run_called(0, further[0].run_number, further[0].run) == demo.id_of(0, added));
    const auto all_ended = [&] {
        return std::all_of(further.begin(), further.end(), [](const FurtherAnswer& one) { return one.finished; });
    };
    REQUIRE(driven.draw_until(all_ended, patience));
    for (const FurtherAnswer& one : further) {
        CAPTURE(one.run, one.error);
        CHECK(one.error.empty());
        CHECK(one.remark.empty());
        CHECK(!one.text.empty());
    }

    // The what-if and its run are compared until other runs are chosen as A and B.
    REQUIRE(session.pair.a);
    REQUIRE(session.pair.b);
    CHECK(*session.pair.a == demo.key_of(0, snapkv));
    CHECK(*session.pair.b == demo.key_of(0, added));
    const auto letter = [&](int run, const char* name) {
        const std::string label = "//runs-1/**/" + demo.key_of(0, run).text() + "/" + name;
        driven.drive([&](ImGuiTestContext& c) { c.ItemClick(label.c_str()); });
    };
    letter(2, "A");
    letter(4, "B");
    REQUIRE(session.pair.a);
    REQUIRE(session.pair.b);
    CHECK(*session.pair.a == demo.key_of(0, 2));
    CHECK(*session.pair.b == demo.key_of(0, 4));
    // Exports the view as a figure and as numbers. (The test engine restores the focus when a drive ends.)
    std::optional<FigureRequest> seen;
    for (const char* name : {"difference.pdf", "difference.csv"}) {
        driven.drive([&](ImGuiTestContext& c) {
            c.KeyPress(ImGuiKey_D);
            c.Yield(3);
            seen = driven.app().focused_view()->view->figure(session);
            c.KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_E);
            c.Yield(2);
            c.SetRef("//$FOCUSED");
            c.ItemInputValue("**/##path", name);
            c.Yield(2);
        });
        driven.draw_until([&] { return fs::exists(here.folder / name); }, patience);
        REQUIRE(seen);
        CHECK(seen->figure == "difference");
        CHECK(fs::exists(here.folder / name));
    }
    CHECK(beginning(here.folder / "difference.pdf", 5) == "%PDF-");
    CHECK(beginning(here.folder / "difference.csv", 4) != std::string(4, '\0'));

    driven.drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_Q); });
    CHECK(driven.has_ended());
}

TEST_CASE("the list of recent models contains the default and successfully loaded models") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const fs::path model = fs::path(KVSCOPE_TEST_DATA) / "models" / "llama3-gqa-sharded";
    AppOptions options;
    options.view = "run";
    options.traces = {model};  // as if the file was dropped
    DrivenApp driven(options);
    driven.app().dismiss_start();
    const auto loaded = [&] { return driven.app().engine()->status().model_path; };
    REQUIRE(driven.draw_until([&] { return loaded() == model; }, patience));
    const auto wrong = (model / "nothing.gguf").lexically_normal();
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef("//run-1");
        c.ItemInput("**/##model path");
        c.KeyCharsReplace(wrong.c_str());
        c.ItemClick("**/Chat template");  // leaves the field without Enter
    });
    REQUIRE(driven.draw_until([&] { return !driven.app().engine()->status().error.empty(); }, patience));
    CHECK(loaded() == model);
    CHECK(driven.app().settings().recent_models == std::vector<std::string>{model.lexically_normal().string()});
    driven.app().engine()->load_model({});
    CHECK(driven.draw_until([&] { return loaded() == program::default_model(); }, patience));
}

TEST_CASE("a form saved with two policies runs them on a prompt written in the window") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const WorkingFolder here;
    AppOptions options;
    options.view = "run";
    options.layout = "explore";
    DrivenApp driven(options);
    driven.app().dismiss_start();
    driven.settle();
    RunForm ticked;
    for (PolicyRow& row : ticked.rows)
        row.ticked = row.spec.definition->name == "snapkv" || row.spec.definition->name == "h2o";
    ticked.request.budgets = "64";
    ticked.request.options.n_new = 4;
    driven.app().views()[0]->view->load(ticked.to_json());
    std::string text;
    for (int i = 0; i < 30; ++i) text += "The lighthouse keeper wrote the number " + std::to_string(i) + " down. ";
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef("//run-1");
        c.ItemInputValue("**/##context", text.c_str());
        c.ItemInputValue("**/##question", "Which number came last?");
        // Counting the tokens may first load the model. Until then, the button is Cancel.
        for (int i = 0; i < 3000 && !c.ItemExists("Run"); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            c.Yield();
        }
        c.ItemClick("Run");
        c.Yield(2);
    });
    REQUIRE(driven.draw_until([&] { return driven.app().engine()->status().busy(); }, patience));
    REQUIRE(wait_for_engine(driven));
    driven.settle();
    CHECK(driven.app().engine()->status().error.empty());
    REQUIRE(driven.session().documents().size() == 1);
    const auto reader = driven.session().documents()[0]->reader();
    CHECK(reader->complete());
    for (int r = 0; r < reader->n_runs(0); ++r) UNSCOPED_INFO(reader->run(0, r).label);
    REQUIRE(reader->n_runs(0) == 3);
    CHECK(reader->run(0, 0).policy == "full");
    for (int run = 1; run < 3; ++run) {
        CHECK(reader->run(0, run).status == "complete");
        CHECK(reader->run(0, run).budget == 64);
    }
    CHECK(reader->prompt(0).text.find("number 29 down") != std::string::npos);
    CHECK(reader->prompt(0).question == "Which number came last?");
}

}  // namespace kvscope::gui::testing

#endif
