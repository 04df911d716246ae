// Tests of jobs that pause: they leave the queue, keep their results, and continue or end on request.
#ifdef KVSCOPE_WITH_ENGINE

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/gui/engine/job_queue.h"
#include "app/gui/engine/pausable_progress.h"
#include "common/stopped.h"
#include "engine/common/work_clock.h"

namespace kvscope::gui {
namespace {

/// Jobs that append to a list. Each pauses once.
class PausingJobs {
 public:
    /// @param held released when the job has ended
    uint64_t enqueue(const std::string& name, std::shared_ptr<int> held = nullptr) {
        return jobs.enqueue(name, [this, name, held = std::move(held)] {
            list.push_back(name + " begins");
            const bool goes_on = jobs.pause([this, name](uint64_t job) { paused.emplace_back(name, job); });
            list.push_back(name + (goes_on ? " continues" : " ends"));
            if (!goes_on) throw Stopped();
        });
    }
    void until_idle() {
        while (jobs.status().busy()) std::this_thread::yield();
        jobs.deliver();
    }

    JobProgress progress{[] {}};
    std::vector<std::string> list;  ///< only one job writes at a time
    std::vector<std::pair<std::string, uint64_t>> paused;
    JobQueue jobs{progress, [](const std::string&, bool) {}, [] {}};
};

}  // namespace

TEST_CASE("other jobs run during a pause, and the paused job continues after them with its number") {
    PausingJobs all;
    const uint64_t first = all.enqueue("first"), second = all.enqueue("second");
    all.until_idle();
    REQUIRE(all.paused == std::vector<std::pair<std::string, uint64_t>>{{"first", first}, {"second", second}});
    CHECK(!all.jobs.has(first));
    CHECK(!all.jobs.go_on(first + second, nullptr, nullptr));
    REQUIRE(all.jobs.go_on(second, nullptr, nullptr));
    REQUIRE(all.jobs.go_on(first, nullptr, nullptr));
    CHECK(!all.jobs.go_on(first, nullptr, nullptr));  // the job already waits
    all.until_idle();
    CHECK(all.list == std::vector<std::string>{"first begins", "second begins", "second continues", "first continues"});
}

TEST_CASE("a paused job that is queued and removed from the queue stays paused") {
    PausingJobs all;
    const uint64_t job = all.enqueue("job");
    all.until_idle();
    std::atomic<bool> may_end{false};
    all.jobs.enqueue("another", [&] {
        while (!may_end) std::this_thread::yield();
    });
    bool is_dropped = false;
    REQUIRE(all.jobs.go_on(
        job, [&] { is_dropped = true; }, nullptr));
    CHECK(all.jobs.has(job));
    CHECK(all.jobs.drop(job));
    CHECK(is_dropped);
    CHECK(all.list.size() == 1);
    may_end = true;
    REQUIRE(all.jobs.go_on(job, nullptr, nullptr));
    all.until_idle();
    CHECK(all.list == std::vector<std::string>{"job begins", "job continues"});
}

TEST_CASE("a paused job frees its memory when it ends or when the queue is destroyed") {
    auto held = std::make_shared<int>(), other = std::make_shared<int>();
    {
        PausingJobs all;
        const uint64_t job = all.enqueue("job", held);
        all.enqueue("other", other);
        all.until_idle();
        CHECK(held.use_count() == 2);
        all.jobs.end_paused(job);
        CHECK(held.use_count() == 1);
        CHECK(all.list.back() == "job ends");
        CHECK(!all.jobs.go_on(job, nullptr, nullptr));
        CHECK(other.use_count() == 2);
    }
    CHECK(other.use_count() == 1);
}

TEST_CASE("pauses do not count as work, and progress continues from its last value") {
    JobProgress shown([] {});
    std::atomic<bool> is_paused{false};
    engine::WorkClock::duration worked{}, passed{};
    PausableWork* self = nullptr;
    std::string place;
    PausableWork work([&] {
        PausableProgress progress(shown, "run", [&](const std::string& paused_at) {
            place = paused_at;
            is_paused = true;
            const bool goes_on = self->pause();
            shown.start("run");  // as the queue does before a job continues
            return goes_on;
        });
        const auto begin = std::chrono::steady_clock::now();
        const auto work_begin = engine::WorkClock::now();
        progress.begin("prefill", 30, "layers");
        progress.advance(12);
        progress.allow([] {});
        CHECK_NOTHROW(progress.throw_if_stopped());
        worked = engine::WorkClock::now() - work_begin;
        passed = std::chrono::steady_clock::now() - begin;
    });
    self = &work;
    shown.start("run");
    shown.go_on(EngineStatus::State::running, "run");
    shown.cancel();
    CHECK(!work.advance());
    CHECK(place == "prefill: 12 of 30 layers");
    const auto pause = std::chrono::milliseconds(50);
    std::this_thread::sleep_for(pause);
    CHECK(work.advance());
    CHECK(passed - worked >= pause);
    CHECK(shown.status().state == EngineStatus::State::running);
    CHECK(shown.status().phase == "prefill");
    CHECK(shown.status().share == Approx(12 / 30.0));
}

TEST_CASE("a run that cannot be paused is cancelled immediately") {
    JobProgress shown([] {});
    int n_pauses = 0;
    PausableProgress progress(shown, "run", [&](const std::string&) { return ++n_pauses > 0; });
    shown.start("run");
    shown.cancel();
    CHECK_THROWS_AS(progress.throw_if_stopped(), Stopped);
    progress.allow([] {});
    CHECK(progress.stop_token().stop_requested());
    CHECK(n_pauses == 0);
}

}  // namespace kvscope::gui

#endif
