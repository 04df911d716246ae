// How much memory a process may still allocate, and when work is refused beforehand.

#include <c10/core/Allocator.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>

#include "engine/common/engine_error.h"
#include "engine/common/memory.h"
#include "engine/device/catch_single_run_failure.h"
#include "engine/run_requirements.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/sanitized.h"
#include "tests/skip.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

constexpr uint64_t gib = uint64_t{1} << 30;

/// The files of /proc and /sys about memory, with 8 GiB available.
class Machine {
 public:
    explicit Machine(const std::string& groups) {
        write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n");
        write("proc/self/cgroup", groups);
    }
    void write(const std::string& file, const std::string& text) const {
        std::filesystem::create_directories((root() / file).parent_path());
        std::ofstream(root() / file) << text;
    }
    void write(const std::string& file, uint64_t number) const { write(file, fmt::format("{}\n", number)); }
    std::filesystem::path root() const { return folder_.path(); }

 private:
    TemporaryFolder folder_;
};

/// Returns the available memory without the limits of the test's own process.
engine::AvailableMemory available(const Machine& machine) { return engine::available_memory(machine.root()); }

/// Restores a limit when destroyed.
struct LimitBehind {
    rlimit before{};
    LimitBehind() { getrlimit(RLIMIT_AS, &before); }
    ~LimitBehind() { setrlimit(RLIMIT_AS, &before); }
};

}  // namespace

TEST_CASE("available memory is the minimum of the machine's and what its control groups leave", "[processor]") {
    const std::string of_group = "the memory limit of its control group";
    const std::string folder = "sys/fs/cgroup/";
    SECTION("no group has a limit") {
        const Machine machine("0::/user.slice/a.scope\n");
        machine.write(folder + "user.slice/a.scope/memory.max", "max\n");
        machine.write(folder + "user.slice/a.scope/memory.current", gib);
        CHECK(available(machine).bytes == 8 * gib);
        CHECK(available(machine).limit.empty());
    }
    SECTION("version 2: a parent group has the limit, and cached file pages do not count") {
        const Machine machine("0::/user.slice/a.scope\n");
        machine.write(folder + "user.slice/a.scope/memory.max", "max\n");
        machine.write(folder + "user.slice/a.scope/memory.current", gib);
        machine.write(folder + "user.slice/memory.max", 4 * gib);
        machine.write(folder + "user.slice/memory.current", 3 * gib);
        machine.write(folder + "user.slice/memory.stat",
                      fmt::format("anon {}\nactive_file {}\ninactive_file {}\n", gib, gib / 2, gib));
        CHECK(available(machine).bytes == 4 * gib - (3 * gib - gib / 2 - gib));
        CHECK(available(machine).limit == of_group);
    }
    SECTION("version 1, in a container that sees only its own group") {
        const Machine machine("11:cpu,cpuacct:/docker/1\n7:memory:/docker/1\n0::/docker/1\n");
        machine.write(folder + "memory/memory.limit_in_bytes", 2 * gib);
        machine.write(folder + "memory/memory.usage_in_bytes", gib);
        machine.write(folder + "memory/memory.stat", "cache 5\ntotal_inactive_file 1024\ntotal_active_file 1024\n");
        CHECK(available(machine).bytes == gib + 2048);
        CHECK(available(machine).limit == of_group);
    }
    SECTION("a group that exceeds its limit") {
        const Machine machine("0::/\n");
        machine.write(folder + "memory.max", gib);
        machine.write(folder + "memory.current", 2 * gib);
        CHECK(available(machine).bytes == 0);
    }
    SECTION("a limit above the machine's memory") {
        const Machine machine("0::/\n");
        machine.write(folder + "memory.max", 64 * gib);
        machine.write(folder + "memory.current", gib);
        CHECK(available(machine).bytes == 8 * gib);
    }
}

TEST_CASE("available memory respects ulimit -v", "[processor]") {
    if (kvscope::tests::sanitized) KVSCOPE_SKIP("a sanitizer takes terabytes of addresses");
    const LimitBehind behind;
    const uint64_t free = engine::available_memory().bytes.value();
    rlimit limit = behind.before;
    limit.rlim_cur = uint64_t{1} << 36;
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    const auto now = engine::available_memory();
    CHECK(now.bytes < uint64_t{1} << 36);
    limit.rlim_cur = gib / 16;  // less than the process uses already
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(engine::available_memory().bytes == 0);
    CHECK(engine::available_memory().limit == "ulimit -v");
    CHECK(free > 0);
}

TEST_CASE("a request for more than is available fails with both numbers and advice", "[processor]") {
    CHECK_NOTHROW(engine::require_available_memory(1, "it needs", "take less"));
    std::string message;
    try {
        engine::require_available_memory(gib << 20, "it needs", "take less");
    } catch (const engine::RunError& error) {
        message = error.what();
    }
    CHECK_THAT(message, Catch::StartsWith("it needs 1048576.00 GiB of memory, but "));
    CHECK_THAT(message, Catch::EndsWith("take less, or free some memory. KVSCOPE_ANY_MEMORY=1 skips this check"));
    setenv("KVSCOPE_ANY_MEMORY", "1", 1);
    CHECK_NOTHROW(engine::require_available_memory(gib << 20, "it needs", "take less"));
    unsetenv("KVSCOPE_ANY_MEMORY");
}

TEST_CASE("the least memory of runs is the memory of their caches", "[processor]") {
    const auto model = small_model("llama3-gqa-sharded", kernels::DType::f32);  // 2 layers, 4 heads, 2 KV heads of 16
    const auto prompt = prompt_of_ids(some_ids(model, 100));
    engine::ExperimentOptions options;
    options.n_new = 10;
    options.record = false;
    const auto of = [&](std::vector<engine::RunPlan> plans) {
        return engine::least_memory_bytes(model, std::vector{prompt}, engine::with_full_run_first(std::move(plans)),
                                          options);
    };
    const uint64_t of_token = uint64_t{2} * 2 * 2 * 16 * 4;  // keys and values, layers, KV heads, f32 numbers
    CHECK(of({}) == 101 * of_token);                         // an answer may end after its first token
    options.ignore_eos = true;
    CHECK(of({}) == 110 * of_token);
    CHECK(of({plan("snapkv:window=8", "40")}) == (110 + 50) * of_token);
    CHECK(of({plan("snapkv:window=8", "40"), plan("h2o", "20%")}) == (110 + 50 + 30) * of_token);
    CHECK(of({plan("snapkv:window=8", "400")}) == (110 + 110) * of_token);
    options.isolated = true;
    CHECK(of({plan("snapkv:window=8", "40"), plan("h2o", "20%")}) == (110 + 50) * of_token);
    options.batch = 3;
    CHECK(of({plan("snapkv:window=8", "40")}) == 3 * 110 * of_token);
    options.batch = 1;
    options.record = true;
    options.window = 64;
    CHECK(of({}) == 110 * of_token + uint64_t{2} * 4 * (64 * 64 + 100) * 4);
}

TEST_CASE("lack of memory is not the failure of a single run", "[processor]") {
    if (kvscope::tests::sanitized) KVSCOPE_SKIP("a sanitizer's build has libtorch's own allocator");
    auto& allocator = *c10::GetAllocator(c10::DeviceType::CPU);
    CHECK_THROWS_AS(allocator.allocate(size_t{1} << 46), std::bad_alloc);
    CHECK_THROWS_AS(engine::catch_single_run_failure([&] { allocator.allocate(size_t{1} << 46); }), std::bad_alloc);
    CHECK_THROWS_AS(engine::catch_single_run_failure([&] { allocator.allocate(SIZE_MAX); }), std::bad_alloc);
}

TEST_CASE("checks that need no weights run before the weights are read", "[processor]") {
    struct Steps final : engine::Progress {
        void begin(std::string_view phase, int64_t, std::string_view) override { begun += std::string(phase) + " "; }
        void advance(int64_t) override {}
        void message(std::string_view) override {}
        std::string begun;
    } progress;
    const auto path = test_data("models/llama3-gqa-sharded");
    const auto refuse = [&](const engine::Model& found) {
        CHECK_FALSE(found.is_loaded());
        CHECK(found.dtype() == kernels::DType::f32);
        CHECK_FALSE(found.fingerprint().empty());
        CHECK(found.tokenizer().vocab_size() > 0);
        CHECK_FALSE(found.end_ids().empty());
        throw engine::UsageError("the prompt is too long");
    };
    CHECK_THROWS_AS(engine::Model::open(path, kernels::DType::f32, progress, {}, refuse), engine::UsageError);
    CHECK(progress.begun == "fingerprint ");
}
