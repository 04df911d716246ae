// Prints how fast a GPU or CPU computes attention and matrix products, and compares each rate with the measured memory
// bandwidth or the fastest product. See --help for options.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cuda_backend.h"
#include "kernels/backend.h"

namespace {

using namespace kvscope;
using kernels::DType;

struct Sizes {
    std::string device = "cuda";
    int heads = 32, kv_heads = 8, head_dim = 128;
    int64_t tokens = 8192, runs = 48, entries = 2048;
};

std::unique_ptr<kernels::DeviceArray> numbers(const kernels::Backend& backend, int64_t n) {
    auto array = std::make_unique<kernels::DeviceArray>(backend, static_cast<size_t>(n) * 2);
    std::vector<uint16_t> some(static_cast<size_t>(std::min<int64_t>(n, 1 << 20)));
    uint32_t state = 1;
    for (uint16_t& number : some) {
        state = state * 1664525u + 1013904223u;
        number = static_cast<uint16_t>(0x3c00u + (state >> 24) + ((state >> 8) & 0x8000u));  // ± 0.0078 … 0.03
    }
    for (int64_t at = 0; at < n; at += static_cast<int64_t>(some.size()))
        backend.upload(static_cast<char*>(array->data()) + 2 * at, some.data(),
                       2 * static_cast<size_t>(std::min<int64_t>(n - at, static_cast<int64_t>(some.size()))));
    return array;
}

/// Returns the shortest time of one call, from several measurements of some milliseconds.
double seconds_of(const kernels::Backend& backend, const kernels::DeviceArray& touched,
                  const std::function<void()>& work) {
    const auto finished = [&] {
        char byte = 0;
        backend.download(&byte, touched.data(), 1);  // waits for all earlier calls
    };
    const auto time = [&](int calls) {
        finished();
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i) work();
        finished();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
    };
    const double once = std::min(time(1), time(1));
    const int calls = std::clamp(static_cast<int>(0.02 / std::max(once, 1e-6)), 1, 200);
    double shortest = once;
    for (int round = 0; round < 5; ++round) shortest = std::min(shortest, time(calls));
    return shortest;
}

double copied_bytes_a_second(const kernels::Backend& backend, const Sizes& sizes) {
    const size_t bytes = sizes.device == "cpu" ? size_t{64} << 20 : size_t{1} << 30, row = 4096;
    const kernels::DeviceArray from(backend, bytes), to(backend, bytes);
    const kernels::RowCopy copy{.from = from.data(),
                                .from_stride = row,
                                .to = to.data(),
                                .to_stride = row,
                                .n_rows = static_cast<int64_t>(bytes / row),
                                .row_bytes = row};
    return 2.0 * static_cast<double>(bytes) / seconds_of(backend, to, [&] { backend.copy_rows({&copy, 1}); });
}

double seconds_of_product(const kernels::Backend& backend, int64_t rows, int64_t in, int64_t out,
                          std::optional<kernels::WeightFormat> format) {
    const auto bytes = format ? static_cast<int64_t>(kernels::row_bytes(*format, in)) * out : 2 * in * out;
    const auto x = numbers(backend, rows * in), weight = numbers(backend, bytes / 2), y = numbers(backend, rows * out);
    const kernels::Linear problem{.dtype = DType::bf16,
                                  .n_rows = rows,
                                  .in = in,
                                  .out = out,
                                  .x = x->data(),
                                  .weight = weight->data(),
                                  .format = format,
                                  .y = y->data(),
                                  .y_dtype = DType::bf16};
    return seconds_of(backend, *y, [&] { backend.linear(problem); });
}

double product_operations_a_second(const kernels::Backend& backend, int64_t rows, int64_t in, int64_t out) {
    return 2.0 * static_cast<double>(rows * in * out) / seconds_of_product(backend, rows, in, out, {});
}

/// Returns how many bytes of weights in a file's format a matrix product reads per second.
double stored_bytes_a_second(const kernels::Backend& backend, int64_t rows, int64_t in, int64_t out,
                             kernels::WeightFormat format) {
    const auto bytes = static_cast<double>(kernels::row_bytes(format, in)) * static_cast<double>(out);
    return bytes / seconds_of_product(backend, rows, in, out, format);
}

double decode_bytes_a_second(const kernels::Backend& backend, const Sizes& sizes) {
    const int64_t d = sizes.head_dim, rows = sizes.runs * sizes.kv_heads, group = sizes.heads / sizes.kv_heads;
    const auto keys = numbers(backend, rows * sizes.entries * d), values = numbers(backend, rows * sizes.entries * d);
    const auto queries = numbers(backend, rows * group * d), out = numbers(backend, rows * group * d);
    const auto at = [](const kernels::DeviceArray& array, int64_t n) {
        return static_cast<char*>(array.data()) + 2 * n;
    };
    std::vector<kernels::DecodeRow> all;
    for (int64_t row = 0; row < rows; ++row)
        all.push_back({.q = at(*queries, row * group * d),
                       .q_stride = d,
                       .n_queries = static_cast<int>(group),
                       .k = at(*keys, row * sizes.entries * d),
                       .v = at(*values, row * sizes.entries * d),
                       .k_stride = d,
                       .v_stride = d,
                       .n_entries = sizes.entries,
                       .out = at(*out, row * group * d),
                       .out_stride = d});
    const double bytes = 4.0 * static_cast<double>(rows * sizes.entries * d);
    return bytes /
           seconds_of(backend, *out, [&] { backend.attention_decode(all, sizes.head_dim, DType::bf16, 0.09f); });
}

double prefill_operations_a_second(const kernels::Backend& backend, const Sizes& sizes, bool with_sums) {
    const int64_t d = sizes.head_dim, n = sizes.tokens, width = sizes.heads * d;
    const auto queries = numbers(backend, n * width), out = numbers(backend, n * width);
    const auto keys = numbers(backend, n * sizes.kv_heads * d), values = numbers(backend, n * sizes.kv_heads * d);
    const kernels::DeviceArray sums(backend, static_cast<size_t>(sizes.heads * n) * sizeof(double));
    const kernels::PrefillAttention problem{.dtype = DType::bf16,
                                            .n_heads = sizes.heads,
                                            .n_kv_heads = sizes.kv_heads,
                                            .head_dim = sizes.head_dim,
                                            .scale = 0.09f,
                                            .n_queries = n,
                                            .q = queries->data(),
                                            .q_token_stride = width,
                                            .k = keys->data(),
                                            .v = values->data(),
                                            .kv_head_stride = n * d,
                                            .out = out->data(),
                                            .out_token_stride = width,
                                            .column_sums = with_sums ? static_cast<double*>(sums.data()) : nullptr,
                                            .column_stride = n};
    const double operations = 4.0 * sizes.heads * static_cast<double>(d) * static_cast<double>(n * (n + 1)) / 2;
    return operations / seconds_of(backend, *out, [&] { backend.attention_prefill({&problem, 1}); });
}

void print_row(const std::string& work, double rate, const char* unit, double peak) {
    fmt::print("| {} | {:.4g} {} | {:.0f} % |\n", work, rate / 1e9, unit, 100 * rate / peak);
    std::cout.flush();
}

void measure(const kernels::Backend& backend, const Sizes& sizes) {
    const bool is_small = sizes.device == "cpu";
    const double copied = copied_bytes_a_second(backend, sizes);
    const int64_t side = is_small ? 1024 : 8192;
    const double multiplied = product_operations_a_second(backend, side, side, side);
    fmt::print("| work | rate | share of peak |\n|---|---|---|\n");
    print_row("copy of rows, bytes read and written (memory peak)", copied, "GB/s", copied);
    print_row(fmt::format("product {0} x {0} x {0}, bf16 (arithmetic peak)", side), multiplied, "GFLOP/s", multiplied);
    print_row(
        fmt::format("decode attention, {} runs x {} KV heads x {} entries", sizes.runs, sizes.kv_heads, sizes.entries),
        decode_bytes_a_second(backend, sizes), "GB/s", copied);
    print_row(fmt::format("prefill attention, {} tokens, {} heads", sizes.tokens, sizes.heads),
              prefill_operations_a_second(backend, sizes, false), "GFLOP/s", multiplied);
    print_row("prefill attention with column sums", prefill_operations_a_second(backend, sizes, true), "GFLOP/s",
              multiplied);
    for (const int64_t rows : {1, 16, 48}) {
        const int64_t in = is_small ? 576 : 4096, out = is_small ? 1536 : 14336;
        const double bytes = product_operations_a_second(backend, rows, in, out) / static_cast<double>(rows);
        print_row(fmt::format("product of {} row{} with a weight of {} x {}, bytes of the weight", rows,
                              rows > 1 ? "s" : "", in, out),
                  bytes, "GB/s", copied);
    }
    if (is_small) return;
    // Weights of a layer of Llama-3.1-8B: Q, K and V; attention output; gate and up; down.
    constexpr std::pair<int64_t, int64_t> shapes[] = {{4096, 6144}, {4096, 4096}, {4096, 28672}, {14336, 4096}};
    constexpr std::pair<kernels::WeightFormat, const char*> formats[] = {{kernels::WeightFormat::q4_0, "Q4_0"},
                                                                         {kernels::WeightFormat::q4_k, "Q4_K"},
                                                                         {kernels::WeightFormat::q6_k, "Q6_K"}};
    for (const auto& [format, name] : formats)
        for (const int64_t rows : {1, 16, 49})
            for (const auto& [in, out] : shapes)
                print_row(fmt::format("product of {} row{} with a weight of {} x {} in {}, bytes of the weight", rows,
                                      rows > 1 ? "s" : "", in, out, name),
                          stored_bytes_a_second(backend, rows, in, out, format), "GB/s", copied);
}

}  // namespace

int main(int argc, char** argv) {
    Sizes sizes;
    CLI::App app("Measures the kernels of a device and compares them with its measured peak rates");
    app.add_option("--device", sizes.device, "Device: cpu, cuda or cuda:N")->capture_default_str();
    app.add_option("--heads", sizes.heads)->capture_default_str();
    app.add_option("--kv-heads", sizes.kv_heads)->capture_default_str();
    app.add_option("--head-dim", sizes.head_dim)->capture_default_str();
    app.add_option("--tokens", sizes.tokens)->capture_default_str();
    app.add_option("--runs", sizes.runs)->capture_default_str();
    app.add_option("--entries", sizes.entries)->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        if (sizes.device == "cpu") {
            measure(kernels::cpu_backend(), sizes);
            return 0;
        }
        const int number = sizes.device == "cuda" ? 0 : std::stoi(sizes.device.substr(sizes.device.find(':') + 1));
        const engine::Card card = engine::read_card_properties(number);
        fmt::print("{}: {}, {:.1f} GiB\n\n", sizes.device, card.name,
                   static_cast<double>(card.total_bytes) / (1 << 30));
        measure(*engine::open_cuda_device(number).backend, sizes);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "kvscope_device_bench: {}\n", error.what());
        return 1;
    }
}
