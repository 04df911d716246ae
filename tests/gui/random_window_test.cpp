#ifdef KVSCOPE_WITH_ENGINE

#include <imgui_internal.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>

#include "app/gui/session/engine_session.h"
#include "app/gui/view/action_registry.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/small_model.h"
#include "tests/gui/two_traces.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

int64_t number_in_environment(const char* name, int64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

/// Random input: clicks, keys, drags, text, actions, traces, workspaces, runs, questions, training. The seed alone
/// determines the input, but not the engine's progress. All files are written to one folder.
class RandomPerson {
 public:
    explicit RandomPerson(uint64_t seed) : random_(seed), came_from_(std::filesystem::current_path()) {
        std::filesystem::current_path(traces_.first.parent_path());
        std::filesystem::copy_file(traces_.first, "damaged.h5");
        std::filesystem::resize_file("damaged.h5", std::filesystem::file_size("damaged.h5") * 2 / 3);
        begin();
    }
    ~RandomPerson() {
        driven_.reset();
        std::filesystem::current_path(came_from_);
    }
    RandomPerson(const RandomPerson&) = delete;
    RandomPerson& operator=(const RandomPerson&) = delete;

    /// Returns a description of the step.
    std::string step() {
        if (driven_->has_ended()) begin();
        // A dialog is left, answered with a name, or a file is dropped behind it, because its list leads out of the
        // folder.
        if (ImGui::GetTopMostPopupModal()) return one_of(in_dialog_);
        return one_of(anywhere_);
    }

    void end() {
        if (driven_->has_ended()) return;
        driven_->app().engine()->cancel();
        REQUIRE(driven_->draw_until([&] { return !driven_->app().engine()->status().busy(); }, patience));
        driven_->settle();
    }

 private:
    struct Deed {
        const char* name;
        int weight;
        void (RandomPerson::*does)();
    };

    int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
    template <class Range>
    auto& any(Range& range) {
        return range[random_() % std::size(range)];
    }

    template <class Deeds>
    std::string one_of(const Deeds& deeds) {
        int total = 0;
        for (const Deed& deed : deeds) total += deed.weight;
        int left = below(total);
        for (const Deed& deed : deeds) {
            left -= deed.weight;
            if (left >= 0) continue;
            detail_.clear();
            (this->*deed.does)();
            return detail_.empty() ? deed.name : std::string(deed.name) + ": " + detail_;
        }
        return "nothing";
    }

    App& app() { return driven_->app(); }
    EngineSession& engine() { return *app().engine(); }

    void begin() {
        driven_.reset();
        AppOptions options;
        options.traces = {traces_.first};
        options.n_threads = 1;
        options.layout = any(App::layout_names());
        driven_ = std::make_unique<DrivenApp>(options);
    }

    ImVec2 place() {
        const ImVec2 size = ImGui::GetMainViewport()->Size;
        return {static_cast<float>(below(static_cast<int>(size.x))),
                static_cast<float>(below(static_cast<int>(size.y)))};
    }
    void with_mouse(const std::function<void(ImGuiTestContext&)>& does) {
        const ImVec2 at = place();
        detail_ = std::to_string(static_cast<int>(at.x)) + "," + std::to_string(static_cast<int>(at.y));
        driven_->drive([&](ImGuiTestContext& c) {
            c.MouseTeleportToPos(at);
            c.Yield();
            if (!ImGui::GetTopMostPopupModal()) does(c);
            c.Yield();
        });
    }
    void click() {
        with_mouse([](ImGuiTestContext& c) { c.MouseClick(ImGuiMouseButton_Left); });
    }
    void click_twice() {
        with_mouse([](ImGuiTestContext& c) { c.MouseDoubleClick(ImGuiMouseButton_Left); });
    }
    void click_right() {
        with_mouse([](ImGuiTestContext& c) { c.MouseClick(ImGuiMouseButton_Right); });
    }
    void drag() {
        const ImVec2 to = place();
        const ImGuiMouseButton button = below(4) == 0 ? ImGuiMouseButton_Right : ImGuiMouseButton_Left;
        with_mouse([&](ImGuiTestContext& c) {
            c.MouseDown(button);
            c.MouseTeleportToPos(to);
            c.Yield(2);
            c.MouseUp(button);
        });
    }
    void wheel() {
        const float turns = static_cast<float>(below(21) - 10);
        with_mouse([&](ImGuiTestContext& c) { c.MouseWheelY(turns); });
    }

    void key() {
        static constexpr std::array keys{
            ImGuiKey_Escape,     ImGuiKey_Enter,    ImGuiKey_Tab,       ImGuiKey_Space,     ImGuiKey_LeftArrow,
            ImGuiKey_RightArrow, ImGuiKey_UpArrow,  ImGuiKey_DownArrow, ImGuiKey_Home,      ImGuiKey_End,
            ImGuiKey_PageUp,     ImGuiKey_PageDown, ImGuiKey_Delete,    ImGuiKey_Backspace, ImGuiKey_LeftBracket,
            ImGuiKey_Minus,      ImGuiKey_Equal,    ImGuiKey_Slash,     ImGuiKey_F1,        ImGuiKey_F11};
        const int which = below(static_cast<int>(keys.size()) + 36);
        ImGuiKeyChord chord = which < 20   ? keys[static_cast<size_t>(which)]
                              : which < 46 ? ImGuiKey_A + which - 20
                                           : ImGuiKey_0 + which - 46;
        if (below(3) == 0) chord |= ImGuiMod_Ctrl;
        if (below(4) == 0) chord |= ImGuiMod_Shift;
        detail_ = shortcut_text(chord);
        driven_->drive([&](ImGuiTestContext& c) {
            c.KeyPress(chord);
            c.Yield();
        });
    }
    void text() {
        static constexpr std::array texts{"fox", "16", "0.5", "-1", "64,128", "snapkv:window=4", "日本語 é", "t7", "∞"};
        detail_ = any(texts);
        driven_->drive([&](ImGuiTestContext& c) {
            c.KeyChars(detail_.c_str());
            c.Yield();
        });
    }

    void act() {
        const auto& all = app().actions().all();
        const Action action = all[random_() % all.size()];
        detail_ = action.name;
        if (action.enabled && !action.enabled()) return;
        app().actions().start(action);
        frames();
    }
    void frames() {
        driven_->draw_until([] { return false; }, 1 + below(6));
    }
    void settle() { driven_->settle(); }
    void take_picture() { driven_->picture(); }
    void lay_out() {
        app().apply_layout(any(App::layout_names()));
        frames();
    }
    void change_look() {
        static constexpr std::array scales{0.75F, 1.0F, 1.5F, 2.0F};
        app().set_scale(any(scales));
        app().set_light(below(2) == 0);
        frames();
    }

    void open_trace() {
        const std::array paths{traces_.first, traces_.second, std::filesystem::path("damaged.h5"),
                               std::filesystem::path("run-0.h5"), std::filesystem::path("missing.h5")};
        const std::filesystem::path& path = any(paths);
        detail_ = path.filename().string();
        if (below(2) == 0)
            app().open_trace(path);
        else
            app().open_files({path});
        frames();
    }
    void drop_workspace() {
        const std::filesystem::path path = "space-" + std::to_string(below(2)) + ".json";
        detail_ = path.string();
        try {
            if (!std::filesystem::exists(path)) app().save_workspace(path);
            app().open_workspace(path);
        } catch (const std::exception& error) {
            detail_ += std::string(", ") + error.what();
        }
        frames();
    }

    void run() {
        static constexpr std::array policies{
            "h2o", "snapkv:window=4", "kvslimmer:chunk=8,sinks=2", "think:window=4", "palu", "minicache", "random"};
        RunRequest request;
        request.model = small_model;
        request.context = "The quick brown fox jumps over the lazy dog, and then the other fox in the northern forest.";
        if (below(2) == 0) request.questions = {"Who jumps?", "Where?"};
        request.policies = {any(policies), any(policies)};
        request.budgets = below(2) == 0 ? "12" : "0.9";
        request.options.n_new = 2 + below(30);
        request.output = "run-" + std::to_string(below(3)) + ".h5";
        request.force = true;
        detail_ =
            request.output.string() + " " + request.policies[0] + " " + request.policies[1] + " " + request.budgets;
        engine().run(request);
        frames();
    }
    void train() {
        TrainingRequest request;
        request.n_tokens = 600;
        request.by_descent = below(2) == 0;
        request.steps = 3;
        request.output = "maps.safetensors";
        request.force = true;
        engine().train(request);
        frames();
    }
    void cancel() {
        engine().cancel();
        frames();
    }
    std::optional<RunKey> any_run() {
        const auto runs = driven_->session().all_runs();
        if (runs.empty()) return std::nullopt;
        return runs[random_() % runs.size()];
    }
    void ask() {
        if (const auto run = any_run()) engine().ask({*run}, "Why?");
        frames();
    }
    void decode() {
        if (const auto run = any_run()) engine().decode({*run});
        frames();
    }
    void switch_cache() {
        engine().switch_cache(below(4));
        frames();
    }
    void repeat_prefill() {
        const auto& documents = driven_->session().documents();
        if (!documents.empty()) engine().repeat_prefill(any(documents)->id(), 0, small_model);
        frames();
    }
    void begin_again() { begin(); }

    void escape() {
        driven_->drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_Escape); });
    }
    void answer() {
        static constexpr std::array names{"a.pdf", "b.csv", "c.png", "d.json", "e.svg", "none.h5", "space-0.json"};
        detail_ = any(names);
        driven_->drive([&](ImGuiTestContext& c) {
            c.KeyCharsReplaceEnter(detail_.c_str());
            c.Yield(2);
        });
    }

    static constexpr std::array anywhere_{Deed{"click", 30, &RandomPerson::click},
                                          Deed{"double click", 6, &RandomPerson::click_twice},
                                          Deed{"right click", 8, &RandomPerson::click_right},
                                          Deed{"drag", 14, &RandomPerson::drag},
                                          Deed{"wheel", 8, &RandomPerson::wheel},
                                          Deed{"key", 18, &RandomPerson::key},
                                          Deed{"text", 5, &RandomPerson::text},
                                          Deed{"action", 12, &RandomPerson::act},
                                          Deed{"frames", 4, &RandomPerson::frames},
                                          Deed{"settle", 2, &RandomPerson::settle},
                                          Deed{"picture", 1, &RandomPerson::take_picture},
                                          Deed{"layout", 2, &RandomPerson::lay_out},
                                          Deed{"look", 1, &RandomPerson::change_look},
                                          Deed{"open", 3, &RandomPerson::open_trace},
                                          Deed{"workspace", 2, &RandomPerson::drop_workspace},
                                          Deed{"run", 3, &RandomPerson::run},
                                          Deed{"train", 1, &RandomPerson::train},
                                          Deed{"cancel", 2, &RandomPerson::cancel},
                                          Deed{"ask", 2, &RandomPerson::ask},
                                          Deed{"decode", 2, &RandomPerson::decode},
                                          Deed{"switch cache", 2, &RandomPerson::switch_cache},
                                          Deed{"prefill", 1, &RandomPerson::repeat_prefill},
                                          Deed{"begin again", 1, &RandomPerson::begin_again}};
    static constexpr std::array in_dialog_{Deed{"escape", 6, &RandomPerson::escape},
                                           Deed{"answer", 5, &RandomPerson::answer},
                                           Deed{"frames", 2, &RandomPerson::frames},
                                           Deed{"open", 1, &RandomPerson::open_trace},
                                           Deed{"workspace", 2, &RandomPerson::drop_workspace},
                                           Deed{"cancel", 1, &RandomPerson::cancel},
                                           Deed{"begin again", 1, &RandomPerson::begin_again}};

    std::mt19937_64 random_;
    std::filesystem::path came_from_;
    TwoTraces traces_;
    std::unique_ptr<DrivenApp> driven_;
    std::string detail_;
};

}  // namespace

TEST_CASE("random user actions in any order leave the window consistent") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const int64_t seed = number_in_environment("KVSCOPE_RANDOM_SEED", 1);
    const int64_t minutes = number_in_environment("KVSCOPE_RANDOM_MINUTES", 0);
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(minutes);
    std::ofstream done("random-" + std::to_string(seed) + ".txt");  // helps to read a sanitizer's report
    RandomPerson person(static_cast<uint64_t>(seed));
    for (int64_t i = 0; i < 150 || std::chrono::steady_clock::now() < until; ++i) {
        CAPTURE(seed, i);
        done << i << ' ' << person.step() << std::endl;
    }
    person.end();
}

}  // namespace kvscope::gui::testing
#endif
