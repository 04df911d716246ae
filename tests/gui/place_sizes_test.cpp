#include "app/gui/layout/place_sizes.h"

#include <GLFW/glfw3.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>

#include "app/gui/layout/dock_places.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// A dock space with places at the left, at the right and below the center, in a window of any size.
class Places {
 public:
    explicit Places(ImVec2 size) {
        draw(size, [&] {
            const std::vector<Cut> cuts = {{"all", ImGuiDir_Left, 0.2f, "left"},
                                           {"all", ImGuiDir_Right, 0.25f, "right"},
                                           {"all", ImGuiDir_Down, 0.4f, "below"}};
            ImGui::DockBuilderRemoveNode(id());
            ImGui::DockBuilderAddNode(id(), ImGuiDockNodeFlags_DockSpace);
            ImGui::DockBuilderSetNodeSize(id(), size);
            nodes_["all"] = id();
            for (const Cut& cut : cuts) {
                ImGuiID rest = 0;
                nodes_[cut.to] = ImGui::DockBuilderSplitNode(nodes_["all"], cut.side, cut.share, nullptr, &rest);
                nodes_["all"] = rest;
            }
            for (const auto& [name, node] : nodes_) ImGui::DockBuilderDockWindow(("place " + name).c_str(), node);
            ImGui::DockBuilderFinish(id());
        });
        resize(size);
    }
    ~Places() {
        draw({400, 300}, [&] { ImGui::DockBuilderRemoveNode(id()); });
    }

    void resize(ImVec2 size) {
        for (int i = 0; i < 4; ++i) draw(size, [&] { sizes_.fit(id(), size); });
    }
    ImVec2 size_of(const std::string& name) const { return ImGui::DockBuilderGetNode(nodes_.at(name))->Size; }
    void set_width(const std::string& name, float width) {
        ImGui::DockBuilderGetNode(nodes_.at(name))->SizeRef.x = width;
    }

 private:
    static ImGuiID id() { return ImHashStr("places of a test"); }
    void draw(ImVec2 size, const std::function<void()>& before) {
        test_window()->draw_frame([&] {
            ImGui::SetNextWindowPos({0, 0});
            ImGui::SetNextWindowSize({size.x + 40, size.y + 60});
            ImGui::Begin("host of places");
            before();
            if (ImGui::DockBuilderGetNode(id())) ImGui::DockSpace(id(), size);
            ImGui::End();
            for (const char* name : {"place all", "place left", "place right", "place below"}) {
                ImGui::Begin(name);
                ImGui::End();
            }
            return true;
        });
    }

    PlaceSizes sizes_;
    std::map<std::string, ImGuiID> nodes_;
};

/// Known only during a frame.
float font_size() {
    float size = 0;
    test_window()->draw_frame([&] {
        size = ImGui::GetFontSize();
        return true;
    });
    return size;
}

}  // namespace

TEST_CASE("a smaller window first shrinks the places beside and below, and a larger one restores them") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const float em = font_size();
    Places places({100 * em, 60 * em});
    const ImVec2 left = places.size_of("left"), right = places.size_of("right"), below = places.size_of("below"),
                 middle = places.size_of("all");
    REQUIRE(left.x > 18 * em);
    const float least_width = 13 * em;
    const float least_height = 8 * em;

    places.resize({94 * em, 57 * em});
    CHECK(places.size_of("all").x == Approx(middle.x).margin(3));
    CHECK(places.size_of("all").y == Approx(middle.y).margin(3));
    CHECK(places.size_of("left").x < left.x);
    CHECK(places.size_of("right").x < right.x);
    CHECK(places.size_of("below").y == Approx(below.y - 3 * em).margin(3));

    places.resize({60 * em, 30 * em});
    CHECK(places.size_of("left").x == Approx(least_width).margin(2));
    CHECK(places.size_of("right").x == Approx(least_width).margin(2));
    CHECK(places.size_of("below").y == Approx(least_height).margin(2));
    CHECK(places.size_of("all").x < middle.x);

    places.resize({100 * em, 60 * em});
    CHECK(places.size_of("left").x == left.x);
    CHECK(places.size_of("right").x == right.x);
    CHECK(places.size_of("below").y == below.y);
    places.resize({104 * em, 62 * em});
    CHECK(places.size_of("left").x == left.x);
    CHECK(places.size_of("all").x == Approx(middle.x + 4 * em).margin(2));
}

TEST_CASE("a place resized in a small window keeps its size") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const float em = font_size();
    const float wanted = 22 * em;
    Places places({100 * em, 60 * em});
    places.resize({74 * em, 47 * em});
    places.set_width("left", wanted);
    places.resize({74 * em, 47 * em});
    CHECK(places.size_of("left").x == wanted);
    places.resize({100 * em, 60 * em});
    CHECK(places.size_of("left").x == wanted);
}

TEST_CASE("a side dragged in a small window does not change the sizes that the others regain") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const float em = font_size();
    Places places({100 * em, 60 * em});
    const float right = places.size_of("right").x;
    places.resize({74 * em, 47 * em});
    REQUIRE(places.size_of("right").x < right);
    places.set_width("left", 22 * em);
    places.resize({74 * em, 47 * em});
    places.resize({100 * em, 60 * em});
    CHECK(places.size_of("right").x == right);
    CHECK(places.size_of("left").x == 22 * em);
}

TEST_CASE("sides regain their sizes even if a view was maximized while the window was small") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    GLFWwindow* window = glfwGetCurrentContext();
    int width = 0, height = 0;
    glfwGetWindowSize(window, &width, &height);
    const auto resize = [&](int to_width, int to_height) {
        glfwSetWindowSize(window, to_width, to_height);
        REQUIRE(
            driven.draw_until([&] { return static_cast<int>(ImGui::GetMainViewport()->Size.x) == to_width; }, 4000));
        driven.settle();
    };
    const auto width_of = [](const char* title) { return ImGui::FindWindowByName(title)->Size.x; };
    const float left = width_of("Runs###runs-1"), right = width_of("Inspector###inspector-1");
    resize(width - 400, height - 200);
    CHECK(width_of("Inspector###inspector-1") < right);
    for (int i = 0; i < 2; ++i) {
        driven.start_by_palette("maximize the view");
        driven.settle();
    }
    resize(width, height);
    CHECK(width_of("Runs###runs-1") == left);
    CHECK(width_of("Inspector###inspector-1") == right);
}

}  // namespace kvscope::gui::testing
