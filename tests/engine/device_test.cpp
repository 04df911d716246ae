// Devices: names, refusals, the fake device of other tests, and libtorch's functions compared with the kernels.

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <numeric>
#include <utility>

#include "engine/common/engine_error.h"
#include "engine/model/device_selection.h"
#include "engine/options/device_name.h"
#include "kernels/bf16.h"
#include "kernels/cuda_library.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/fake_device.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

TEST_CASE("devices have names, and other names are refused") {
    for (const char* name : {"cpu", "auto", "cuda", "cuda:0", "cuda:12"}) CHECK(engine::is_device_name(name));
    for (const char* name : {"", "CPU", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "gpu"})
        CHECK_FALSE(engine::is_device_name(name));
    engine::SilentProgress progress;
    const auto model = test_data("models/llama2-mha");
    CHECK(engine::open_device_for_model("cpu", model, "auto", progress).is_processor());
    CHECK_THROWS_AS(engine::open_device_for_model("gpu", model, "auto", progress), engine::UsageError);
    CHECK(engine::devices().front().name == "cpu");
    CHECK(engine::device_text({}).empty());
    if (kernels::cuda::available()) return;
    CHECK(engine::devices().size() == 1);
    CHECK(engine::open_device_for_model("auto", model, "auto", progress).is_processor());
    CHECK_THROWS_WITH(engine::open_device_for_model("cuda:1", model, "auto", progress),
                      Catch::StartsWith("--device cuda:1: ") && Catch::Contains(kernels::cuda::unavailable_reason()));
}

TEST_CASE("reading a device's memory ends the program") {
    const kernels::DeviceArray array(*engine::fake_device().backend, 64);
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL);
        const volatile char* data = static_cast<const char*>(array.data());
        _exit(data[0] == 0 ? 1 : 2);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGSEGV);
}

namespace {

/// Arrays on a device, filled with the same random numbers on each device.
class Arrays {
 public:
    explicit Arrays(const kernels::Backend& backend) : backend_(backend) {}

    template <class T = float>
    T* random(size_t n) {
        std::vector<T> numbers(n);
        for (T& number : numbers) number = kernels::from_float<T>(next());
        return place(numbers);
    }
    template <class T>
    T* place(const std::vector<T>& numbers) {
        arrays_.push_back(std::make_unique<kernels::DeviceArray>(backend_, numbers.size() * sizeof(T)));
        backend_.upload(arrays_.back()->data(), numbers.data(), numbers.size() * sizeof(T));
        return static_cast<T*>(arrays_.back()->data());
    }
    template <class T>
    std::vector<double> numbers(const T* data, size_t n) const {
        std::vector<T> here(n);
        backend_.download(here.data(), data, n * sizeof(T));
        std::vector<double> all;
        for (const T& number : here) {
            if constexpr (std::is_same_v<T, double>)
                all.push_back(number);
            else
                all.push_back(double{kernels::to_float(number)});
        }
        return all;
    }
    const kernels::Backend& backend() const { return backend_; }

 private:
    float next() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<float>(state_ >> 40) / 8388608.0f - 1.0f;
    }

    const kernels::Backend& backend_;
    std::vector<std::unique_ptr<kernels::DeviceArray>> arrays_;
    uint64_t state_ = 1;
};

/// Runs the same work on the processor and on the fake device. @param work returns the results
template <class Work>
void check_alike(double tolerance, Work work) {
    Arrays here(kernels::cpu_backend()), there(*engine::fake_device().backend);
    const std::vector<double> expected = work(here), found = work(there);
    REQUIRE(expected.size() == found.size());
    for (size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        CHECK(found[i] == Approx(expected[i]).margin(tolerance).epsilon(tolerance));
    }
}

template <class T>
constexpr kernels::DType type_of = std::is_same_v<T, float> ? kernels::DType::f32 : kernels::DType::bf16;
template <class T>
constexpr double tolerance_of = std::is_same_v<T, float> ? 2e-5 : 0x1p-6;

}  // namespace

TEMPLATE_TEST_CASE("libtorch's functions agree with the processor's kernels", "", float, kernels::bf16) {
    constexpr auto type = type_of<TestType>;
    constexpr double near = tolerance_of<TestType>;
    constexpr int64_t n = 5, in = 48, out = 21;
    SECTION("products, and rows of a weight") {
        check_alike(near, [&](Arrays& arrays) {
            auto* y = arrays.random<float>(n * out);
            const auto* weight = arrays.random<TestType>(in * out);
            arrays.backend().linear({.dtype = type,
                                     .n_rows = n,
                                     .in = in,
                                     .out = out,
                                     .x = arrays.random<TestType>(n * in),
                                     .weight = weight,
                                     .bias = arrays.random<float>(out),
                                     .y = y});
            auto all = arrays.numbers(y, n * out);
            const std::vector<int32_t> ids{3, 0, 20, 3};
            auto* rows = arrays.random<float>(4 * in);
            arrays.backend().embed({.format = kernels::weight_format_of(type),
                                    .columns = in,
                                    .weight = weight,
                                    .dtype = kernels::DType::bf16,
                                    .ids = ids,
                                    .out = rows});
            for (const double number : arrays.numbers(rows, 4 * in)) all.push_back(number);
            return all;
        });
    }
    SECTION("norms, rotation, SwiGLU") {
        check_alike(near, [&](Arrays& arrays) {
            const auto& backend = arrays.backend();
            auto* residual = arrays.random<float>(n * in);
            auto* normed = arrays.random<TestType>(n * in);
            const auto* weight = arrays.random<float>(in);
            backend.add_rms_norm({.n_rows = n,
                                  .dim = in,
                                  .eps = 1e-5f,
                                  .residual = residual,
                                  .delta = arrays.random<TestType>(n * in),
                                  .delta_dtype = type,
                                  .weight = weight,
                                  .out = normed,
                                  .out_dtype = type});
            backend.rms_norm({.n_rows = n,
                              .heads = 2,
                              .dim = 16,
                              .eps = 1e-5f,
                              .x = normed,
                              .x_dtype = type,
                              .x_stride = in,
                              .weight = weight,
                              .out = normed,
                              .out_dtype = type,
                              .out_stride = in});
            backend.rope({.dtype = type,
                          .n_tokens = n,
                          .n_heads = 3,
                          .head_dim = 16,
                          .x = normed,
                          .token_stride = in,
                          .cosines = arrays.random<float>(n * 8),
                          .sines = arrays.random<float>(n * 8)});
            auto* activated = arrays.random<TestType>(n * in / 2);
            backend.swiglu({.dtype = type,
                            .n_rows = n,
                            .dim = in / 2,
                            .gate = normed,
                            .up = normed + in / 2,
                            .in_stride = in,
                            .out = activated});
            auto all = arrays.numbers(normed, n * in);
            for (const double number : arrays.numbers(activated, n * in / 2)) all.push_back(number);
            for (const double number : arrays.numbers(residual, n * in)) all.push_back(number);
            return all;
        });
    }
    SECTION("attention of a prompt, its column sums, and of a window") {
        for (const int64_t window : {0, 7})
            for (const bool merged : {false, true})
                check_alike(near, [&](Arrays& arrays) {
                    constexpr int64_t before = 9, keys = before + n, d = 16;
                    auto* result = arrays.random<TestType>(n * 4 * d);
                    auto* sums = arrays.place(std::vector<double>(4 * keys, 0.0));
                    std::vector<float> masses(keys);
                    std::iota(masses.begin(), masses.end(), 1.0f);
                    const auto* k = arrays.random<TestType>(2 * keys * d);
                    const kernels::PrefillAttention problem{.dtype = type,
                                                            .n_heads = 4,
                                                            .n_kv_heads = 2,
                                                            .head_dim = d,
                                                            .scale = 0.25f,
                                                            .q_begin = before,
                                                            .n_queries = n,
                                                            .sliding_window = window,
                                                            .q = arrays.random<TestType>(n * 4 * d),
                                                            .q_token_stride = 4 * d,
                                                            .k = k,
                                                            .v = arrays.random<TestType>(2 * keys * d),
                                                            .kv_head_stride = keys * d,
                                                            .cardinality = merged ? arrays.place(masses) : nullptr,
                                                            .out = result,
                                                            .out_token_stride = 4 * d,
                                                            .column_sums = sums,
                                                            .column_stride = keys};
                    arrays.backend().attention_prefill({&problem, 1});
                    auto all = arrays.numbers(result, n * 4 * d);
                    for (const double number : arrays.numbers(sums, 4 * keys)) all.push_back(number);
                    auto* mean = arrays.random<float>(4 * keys);
                    kernels::WindowAttention seen{.n_heads = 4,
                                                  .n_kv_heads = 2,
                                                  .head_dim = d,
                                                  .window = 3,
                                                  .n_tokens = keys,
                                                  .queries = arrays.random<float>(4 * 3 * d),
                                                  .keys = k,
                                                  .keys_dtype = type,
                                                  .key_head_stride = keys * d,
                                                  .sliding_window = window,
                                                  .mean = mean};
                    arrays.backend().window_attention(seen);
                    for (const double number : arrays.numbers(mean, 4 * keys)) all.push_back(number);
                    arrays.backend().window_attention_head_max(seen);
                    for (const double number : arrays.numbers(mean, keys)) all.push_back(number);
                    seen.prefix_only = true;
                    arrays.backend().window_attention(seen);
                    for (const double number : arrays.numbers(mean, 4 * (keys - 3))) all.push_back(number);
                    return all;
                });
    }
    SECTION("attention of a step over rows that continue in others") {
        check_alike(near, [&](Arrays& arrays) {
            constexpr int64_t d = 16, first = 11, second = 4;
            auto* result = arrays.random<TestType>(2 * 3 * d);
            auto* weights = arrays.random<float>(3 * first + 3 * second);
            std::vector<float> masses(first, 2.0f);
            const auto* q = arrays.random<TestType>(3 * d);
            const kernels::DecodeRow row{.q = q,
                                         .q_stride = d,
                                         .n_queries = 3,
                                         .k = arrays.random<TestType>(first * d),
                                         .v = arrays.random<TestType>(first * d),
                                         .k_stride = d,
                                         .v_stride = d,
                                         .n_entries = first,
                                         .cardinality = arrays.place(masses),
                                         .out = result,
                                         .out_stride = d,
                                         .attention = weights};
            kernels::DecodeRow behind = row, alone = row;
            behind.cardinality = nullptr;
            behind.n_entries = second;
            behind.continues = true;
            behind.attention = weights + 3 * first;
            alone.attention = nullptr;
            alone.out = result + 3 * d;
            const kernels::DecodeRow rows[] = {row, behind, alone};
            arrays.backend().attention_decode(rows, d, type, 0.25f);
            auto all = arrays.numbers(result, 2 * 3 * d);
            for (const double number : arrays.numbers(weights, 3 * first + 3 * second)) all.push_back(number);
            return all;
        });
    }
    SECTION("copies (also within an array) and errors of rows") {
        check_alike(1e-12, [&](Arrays& arrays) {
            auto* from = arrays.random<TestType>(20 * 8);
            auto* to = arrays.random<TestType>(6 * 16);
            const std::vector<uint32_t> rows{1, 4, 5, 9, 19};
            constexpr size_t row = 8 * sizeof(TestType);
            const kernels::RowCopy away{.from = from,
                                        .from_stride = row,
                                        .to = to,
                                        .to_stride = 2 * row,
                                        .n_rows = 5,
                                        .row_bytes = row,
                                        .rows = rows.data()};
            kernels::RowCopy within = away;
            within.to = from;
            within.to_stride = row;
            arrays.backend().copy_rows({&away, 1});
            arrays.backend().copy_rows({&within, 1});
            auto all = arrays.numbers(from, 20 * 8);
            for (const double number : arrays.numbers(to, 6 * 16)) all.push_back(number);
            std::vector<double> errors(3 * 2 + 2 * 1, -1.0);
            const kernels::RowErrors forth{.dtype = type,
                                           .n_rows = 3,
                                           .n_heads = 2,
                                           .head_dim = 4,
                                           .found = from,
                                           .found_stride = 16,
                                           .expected = to,
                                           .expected_stride = 8,
                                           .errors = errors.data()};
            kernels::RowErrors back = forth;
            std::swap(back.found, back.expected);
            std::swap(back.found_stride, back.expected_stride);
            back.n_rows = 2, back.n_heads = 1, back.head_dim = 8;
            back.errors += 6;
            const kernels::RowErrors problems[] = {forth, back};
            arrays.backend().row_errors(problems);
            all.insert(all.end(), errors.begin(), errors.end());
            return all;
        });
    }
}
