#include <catch2/catch.hpp>
#include <functional>
#include <optional>
#include <string>

#include "app/gui/session/callback_guard.h"

namespace kvscope::gui {
namespace {

/// Returns functions that use its members.
struct Asker {
    std::string answer;
    Lifetime lifetime{};
    std::function<void(const std::string&)> taker() {
        return lifetime.guard([this](const std::string& text) { answer = text; });
    }
    std::function<bool()> has_answer() const {
        return lifetime.guard([this] { return !answer.empty(); });
    }
};

}  // namespace

TEST_CASE("a guarded function does nothing once its object is gone") {
    std::optional<Asker> asker(std::in_place);
    const auto take = asker->taker();
    const auto has_answer = asker->has_answer();
    const LifetimeWatch watch = asker->lifetime.watch();
    take("yes");
    CHECK(asker->answer == "yes");
    CHECK(has_answer());
    CHECK(!watch.has_ended());
    const Asker copy = *asker;
    asker.reset();
    take("too late");
    CHECK(!has_answer());
    CHECK(watch.has_ended());
    CHECK(copy.answer == "yes");
    CHECK(!copy.lifetime.watch().has_ended());
    CHECK(!LifetimeWatch().has_ended());
}

}  // namespace kvscope::gui
