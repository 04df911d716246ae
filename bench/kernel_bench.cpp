// Compares the rates of the CPU kernels with the measured peak rates. Run it on an idle machine.

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/attention_decode.h"
#include "kernels/attention_prefill.h"
#include "kernels/bf16.h"
#include "kernels/cpu_features.h"
#include "kernels/linear.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/stored_number_products.h"
#include "kernels/swiglu.h"
#include "kernels/weight_format.h"
#include "kernels/window_attention.h"

using namespace kvscope::kernels;

namespace {

/// Returns the time in seconds. With one thread, this is the thread's CPU time, which other programs disturb less.
double now() {
    timespec time{};
    clock_gettime(omp_get_max_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Calls `call` for half a second, but at least three times. Returns the shortest time of a call.
double shortest(const std::function<void()>& call) {
    call();
    double best = 1e30, spent = 0;
    for (int i = 0; i < 3 || (spent < 0.5 && i < 1000); ++i) {
        const double begin = now();
        call();
        const double seconds = now() - begin;
        best = std::min(best, seconds);
        spent += seconds;
    }
    return best;
}

#if defined(__x86_64__)
// GCC 12 warns of uninitialized operands inside its own AVX-512 intrinsics (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
constexpr int n_chains = 16;
constexpr int64_t rounds_of_one_thread = 1 << 20;

[[gnu::target("avx512f,avx512bf16"), gnu::noinline]] float bf16_products() {
    __m512 sums[n_chains];
    for (auto& sum : sums) sum = _mm512_setzero_ps();
    const __m512bh x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
    for (int64_t i = 0; i < rounds_of_one_thread; ++i)
#pragma GCC unroll 16
        for (auto& sum : sums) sum = _mm512_dpbf16_ps(sum, x, x);
    float total = 0;
    for (const auto& sum : sums) total += _mm512_reduce_add_ps(sum);
    return total;
}

[[gnu::target("avx512f"), gnu::noinline]] float avx512_products() {
    __m512 sums[n_chains];
    for (auto& sum : sums) sum = _mm512_setzero_ps();
    const __m512 x = _mm512_set1_ps(1.0f);
    for (int64_t i = 0; i < rounds_of_one_thread; ++i)
#pragma GCC unroll 16
        for (auto& sum : sums) sum = _mm512_fmadd_ps(x, x, sum);
    float total = 0;
    for (const auto& sum : sums) total += _mm512_reduce_add_ps(sum);
    return total;
}

[[gnu::target("avx2,fma"), gnu::noinline]] float avx2_products() {
    __m256 sums[12];
    for (auto& sum : sums) sum = _mm256_setzero_ps();
    const __m256 x = _mm256_set1_ps(1.0f);
    for (int64_t i = 0; i < rounds_of_one_thread; ++i)
#pragma GCC unroll 12
        for (auto& sum : sums) sum = _mm256_fmadd_ps(x, x, sum);
    float total = 0;
    for (const auto& sum : sums) total += _mm256_cvtss_f32(sum);
    return total;
}
#endif

/// @param flops operations of one call @returns operations per second of all threads
double on_all_threads(float (*products)(), double flops) {
    volatile float sink = 0;
    const double seconds = shortest([&] {
#pragma omp parallel
        {
            const float result = products();
#pragma omp critical
            sink = result;
        }
    });
    (void)sink;
    return flops * omp_get_max_threads() / seconds;
}

struct Peaks {
    double bf16 = 0, f32 = 0;  ///< operations per second; 0 if unknown
    double bandwidth = 0;      ///< bytes per second when reading
};

Peaks measure_peaks() {
    Peaks peaks;
#if defined(__x86_64__)
    const SimdLevel level = supported_simd_level();
    const double rounds = static_cast<double>(rounds_of_one_thread);
    if (level >= SimdLevel::avx2) peaks.f32 = on_all_threads(avx2_products, rounds * 12 * 16);
    if (level >= SimdLevel::avx512)
        peaks.f32 = std::max(peaks.f32, on_all_threads(avx512_products, rounds * n_chains * 32));
    if (level >= SimdLevel::avx512_bf16) peaks.bf16 = on_all_threads(bf16_products, rounds * n_chains * 64);
#endif
    const std::vector<double> big(size_t{1} << 26, 1.0);  // 512 MiB, more than any cache
    volatile double sink = 0;
    const double seconds = shortest([&] {
        double total = 0;
#pragma omp parallel for reduction(+ : total) schedule(static)
        for (size_t block = 0; block < big.size() / 64; ++block) {
            const double* x = big.data() + block * 64;
            double sums[8] = {};
            for (int i = 0; i < 64; i += 8)
                for (int c = 0; c < 8; ++c) sums[c] += x[i + c];
            for (const double sum : sums) total += sum;
        }
        sink = total;
    });
    (void)sink;
    peaks.bandwidth = static_cast<double>(big.size() * sizeof(double)) / seconds;
    return peaks;
}

template <class T>
std::vector<T> random_values(size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<T> values(n);
    for (auto& value : values) value = from_float<T>(static_cast<float>(random()) * 0x1p-31f - 1.0f);
    return values;
}

template <class T>
constexpr DType dtype_of = sizeof(T) == 4 ? DType::f32 : DType::bf16;

void print_row(const std::string& name, double seconds, double amount, const char* unit, double peak) {
    std::printf("%-64s %10.3f ms %10.1f %s", name.c_str(), seconds * 1e3, amount / seconds / 1e9, unit);
    if (peak > 0) std::printf("  %5.1f %% of peak", amount / seconds / peak * 100);
    std::printf("\n");
    std::fflush(stdout);
}

/// Dimensions of the attention, by default those of the default model.
struct Model {
    int n_heads = 9, n_kv_heads = 3, head_dim = 64;
};

template <class T>
void bench_prefill(const Model& model, int64_t n_tokens, int64_t chunk, bool column_sums, double peak) {
    const int64_t width = int64_t{model.n_heads} * model.head_dim;
    const auto q = random_values<T>(static_cast<size_t>(n_tokens * width), 1);
    const auto k = random_values<T>(static_cast<size_t>(n_tokens * model.n_kv_heads * model.head_dim), 2);
    const auto v = random_values<T>(k.size(), 3);
    std::vector<T> out(q.size());
    std::vector<double> sums(column_sums ? static_cast<size_t>(model.n_heads * n_tokens) : 0);
    const double seconds = shortest([&] {
        for (int64_t begin = 0; begin < n_tokens; begin += chunk) {
            PrefillAttention p;
            p.dtype = dtype_of<T>;
            p.n_heads = model.n_heads;
            p.n_kv_heads = model.n_kv_heads;
            p.head_dim = model.head_dim;
            p.scale = 1.0f / std::sqrt(static_cast<float>(model.head_dim));
            p.q_begin = begin;
            p.n_queries = std::min(chunk, n_tokens - begin);
            p.q = q.data() + begin * width;
            p.out = out.data() + begin * width;
            p.q_token_stride = p.out_token_stride = width;
            p.k = k.data();
            p.v = v.data();
            p.kv_head_stride = n_tokens * model.head_dim;
            p.column_sums = column_sums ? sums.data() : nullptr;
            p.column_stride = n_tokens;
            attention_prefill(p);
        }
    });
    const double pairs = static_cast<double>(n_tokens) * static_cast<double>(n_tokens + 1) / 2 * model.n_heads;
    print_row(std::string("attention_prefill ") + name_of(dtype_of<T>) + " N=" + std::to_string(n_tokens) +
                  " H=" + std::to_string(model.n_heads) + " d=" + std::to_string(model.head_dim) +
                  " chunk=" + std::to_string(chunk) + (column_sums ? " with column sums" : ""),
              seconds, pairs * 4 * model.head_dim, "GFLOP/s", peak);
}

template <class T>
struct Widened : DecodeEntries {
    Widened(const T* keys_of, const T* values_of, int64_t size) : k(keys_of), v(values_of), d(size) {}
    void read_keys(int64_t begin, int64_t end, float* keys) const override {
        std::transform(k + begin * d, k + end * d, keys, [](T x) { return to_float(x); });
    }
    size_t scratch_floats(int) const override { return 0; }
    void sum_values(int64_t begin, int64_t end, const float* weights, int n_queries, float*,
                    float* out) const override {
        std::fill_n(out, n_queries * d, 0.0f);
        add_weighted({dtype_of<T>, v + begin * d, d, end - begin, static_cast<int>(d)}, weights, decode_tile, n_queries,
                     out);
    }
    const T *k, *v;
    int64_t d;
};

/// Uses `layers` caches, so that entries come from memory instead of the CPU's cache.
/// @param key_dim stored channels of the keys; 0 for all @param in_tiles whether entries are read in tiles
template <class T>
void bench_decode(const Model& model, int runs, int64_t n_entries, int layers, double peak, int key_dim = 0,
                  bool in_tiles = false) {
    const int64_t d = model.head_dim, group = model.n_heads / model.n_kv_heads;
    const int64_t stored = key_dim ? key_dim : d;
    const auto row_elements = static_cast<size_t>(n_entries * d);
    const size_t n_rows = static_cast<size_t>(runs * model.n_kv_heads);
    const auto q = random_values<T>(n_rows * static_cast<size_t>(group * d), 1);
    std::vector<std::vector<T>> caches(static_cast<size_t>(layers));
    for (auto& cache : caches) cache = std::vector<T>(n_rows * row_elements * 2, from_float<T>(0.5f));
    std::vector<T> out(q.size());
    const double seconds = shortest([&] {
        for (const auto& cache : caches) {
            std::vector<DecodeRow> rows(n_rows);
            std::deque<Widened<T>> tiles;
            for (size_t i = 0; i < n_rows; ++i) {
                rows[i].q = q.data() + static_cast<int64_t>(i) * group * d;
                rows[i].out = out.data() + static_cast<int64_t>(i) * group * d;
                rows[i].q_stride = rows[i].out_stride = rows[i].v_stride = d;
                rows[i].k_stride = stored;
                rows[i].key_dim = key_dim;
                rows[i].n_queries = static_cast<int>(group);
                rows[i].k = cache.data() + 2 * i * row_elements;
                rows[i].v = cache.data() + (2 * i + 1) * row_elements;
                rows[i].n_entries = n_entries;
                if (!in_tiles) continue;
                tiles.emplace_back(cache.data() + 2 * i * row_elements, cache.data() + (2 * i + 1) * row_elements, d);
                rows[i].k = rows[i].v = nullptr;
                rows[i].entries = &tiles.back();
            }
            attention_decode(rows, model.head_dim, dtype_of<T>, 0.125f);
        }
    });
    print_row(std::string("attention_decode ") + name_of(dtype_of<T>) + " " + std::to_string(runs) + " runs x " +
                  std::to_string(model.n_kv_heads) + " rows x " + std::to_string(n_entries) + " entries, " +
                  std::to_string(layers) + " layers" +
                  (key_dim ? ", " + std::to_string(key_dim) + " key channels" : "") + (in_tiles ? ", in tiles" : ""),
              seconds, static_cast<double>(n_rows * sizeof(T)) * static_cast<double>(n_entries * (stored + d)) * layers,
              "GB/s", peak);
}

template <class T>
void bench_window(const Model& model, int64_t n_tokens, int window, double peak) {
    const auto queries = random_values<float>(static_cast<size_t>(model.n_heads * window * model.head_dim), 1);
    const auto keys = random_values<T>(static_cast<size_t>(model.n_kv_heads * n_tokens * model.head_dim), 2);
    std::vector<float> mean(static_cast<size_t>(model.n_heads * n_tokens));
    WindowAttention p;
    p.n_heads = model.n_heads;
    p.n_kv_heads = model.n_kv_heads;
    p.head_dim = model.head_dim;
    p.window = window;
    p.n_tokens = n_tokens;
    p.queries = queries.data();
    p.keys = keys.data();
    p.keys_dtype = dtype_of<T>;
    p.key_head_stride = n_tokens * model.head_dim;
    p.mean = mean.data();
    const double seconds = shortest([&] { window_attention(p); });
    print_row(std::string("window_attention ") + name_of(dtype_of<T>) + " keys, N=" + std::to_string(n_tokens) +
                  " w=" + std::to_string(window),
              seconds, 2.0 * model.n_heads * window * static_cast<double>(n_tokens) * model.head_dim, "GFLOP/s", peak);
}

/// @param copies number of weights used in turn, so that weights come from memory as in decoding
template <class T>
void bench_linear(int64_t rows, int64_t in, int64_t out, int copies, const Peaks& peaks, double products) {
    const auto x = random_values<T>(static_cast<size_t>(rows * in), 1);
    const std::vector<std::vector<T>> weights(static_cast<size_t>(copies),
                                              random_values<T>(static_cast<size_t>(in * out), 2));
    std::vector<T> y(static_cast<size_t>(rows * out));
    const double seconds = shortest([&] {
        for (const auto& weight : weights)
            linear({.dtype = dtype_of<T>,
                    .n_rows = rows,
                    .in = in,
                    .out = out,
                    .x = x.data(),
                    .weight = weight.data(),
                    .y = y.data(),
                    .y_dtype = dtype_of<T>});
    });
    const std::string name = std::string("linear ") + name_of(dtype_of<T>) + " " + std::to_string(rows) + " rows, " +
                             std::to_string(in) + " to " + std::to_string(out);
    const double once = seconds / copies;
    if (copies > 1)
        print_row(name, once, static_cast<double>(in * out) * sizeof(T), "GB/s", peaks.bandwidth);
    else
        print_row(name, once, 2.0 * static_cast<double>(rows * in * out), "GFLOP/s", products);
}

/// Measures a product with weights in a file's format: bytes per second for few rows, operations per second for many.
template <class T>
void bench_stored(const char* name, WeightFormat format, int64_t rows, int64_t in, int64_t out, int copies,
                  const Peaks& peaks, double products) {
    const auto x = random_values<T>(static_cast<size_t>(rows * in), 1);
    const size_t bytes = row_bytes(format, in) * static_cast<size_t>(out);
    const std::vector<std::vector<uint8_t>> weights(static_cast<size_t>(copies), std::vector<uint8_t>(bytes, 0x21));
    std::vector<T> y(static_cast<size_t>(rows * out));
    const double seconds = shortest([&] {
        for (const auto& weight : weights)
            linear({.dtype = dtype_of<T>,
                    .n_rows = rows,
                    .in = in,
                    .out = out,
                    .x = x.data(),
                    .weight = weight.data(),
                    .format = format,
                    .y = y.data(),
                    .y_dtype = dtype_of<T>});
    });
    const std::string title = std::string("linear ") + name_of(dtype_of<T>) + " " + name + " " + std::to_string(rows) +
                              " rows, " + std::to_string(in) + " to " + std::to_string(out);
    const double once = seconds / copies;
    if (rows <= 2)
        print_row(title, once, static_cast<double>(bytes), "GB/s", peaks.bandwidth);
    else
        print_row(title, once, 2.0 * static_cast<double>(rows * in * out), "GFLOP/s", products);
}

template <class T>
void bench_stored_products(const Peaks& peaks, double products) {
    const std::pair<const char*, WeightFormat> formats[] = {{"q4_0", WeightFormat::q4_0}, {"q4_1", WeightFormat::q4_1},
                                                            {"q5_0", WeightFormat::q5_0}, {"q5_1", WeightFormat::q5_1},
                                                            {"q8_0", WeightFormat::q8_0}, {"q2_k", WeightFormat::q2_k},
                                                            {"q3_k", WeightFormat::q3_k}, {"q4_k", WeightFormat::q4_k},
                                                            {"q5_k", WeightFormat::q5_k}, {"q6_k", WeightFormat::q6_k}};
    for (const auto& [name, format] : formats)
        for (const int64_t rows : {1, 13}) bench_stored<T>(name, format, rows, 768, 3072, 60, peaks, products);
    bench_stored<T>("q8_0", WeightFormat::q8_0, 1, 576, 49152, 1, peaks, products);
    for (const int64_t rows : {1, 2, 4, 13, 24})
        bench_stored<T>("q4_1", WeightFormat::q4_1, rows, 576, 3072, 60, peaks, products);
}

struct StepProduct {
    const char* name;
    WeightFormat format;
    int64_t in, out;
    int n;  ///< number of such products per step
    std::vector<std::vector<uint8_t>> weights = {};
    double seconds = 0;  ///< time of these products in one step

    double bytes() const { return static_cast<double>(row_bytes(format, in)) * static_cast<double>(out) * n; }
    double operations(int64_t rows) const { return 2.0 * static_cast<double>(rows * in * out) * n; }
};

/// Computes all products of one decode step. No weight is read twice, so weights come from memory, not from the cache.
template <class T>
double multiply_step(std::vector<StepProduct>& products, int64_t rows, const std::vector<T>& x, std::vector<T>& y) {
    const auto multiply = [&](StepProduct& product, int layer) {
        const double begin = now();
        linear({.dtype = dtype_of<T>,
                .n_rows = rows,
                .in = product.in,
                .out = product.out,
                .x = x.data(),
                .weight = product.weights[static_cast<size_t>(layer)].data(),
                .format = product.format,
                .y = y.data(),
                .y_dtype = dtype_of<T>});
        product.seconds += now() - begin;
    };
    for (StepProduct& product : products) product.seconds = 0;
    for (int layer = 0; layer < 30; ++layer)
        for (StepProduct& product : products)
            if (layer < product.n) multiply(product, layer);
    double total = 0;
    for (const StepProduct& product : products) total += product.seconds;
    return total;
}

/// Compares the time of a decode step's products with the least possible time at the measured peaks.
template <class T>
void bench_step(int64_t rows, const Peaks& peaks, double products_peak) {
    std::vector<StepProduct> products = {{"qkv", WeightFormat::q4_1, 576, 960, 30},
                                         {"output", WeightFormat::q4_1, 576, 576, 30},
                                         {"gate and up", WeightFormat::q4_1, 576, 3072, 30},
                                         {"down", WeightFormat::q4_1, 1536, 576, 30},
                                         {"head", WeightFormat::q8_0, 576, 49152, 1}};
    for (StepProduct& product : products)
        product.weights.assign(
            static_cast<size_t>(product.n),
            std::vector<uint8_t>(row_bytes(product.format, product.in) * static_cast<size_t>(product.out), 0x21));
    const auto x = random_values<T>(static_cast<size_t>(rows * 1536), 1);
    std::vector<T> y(static_cast<size_t>(rows * 49152));
    std::vector<StepProduct> best;
    double shortest_step = 1e30, spent = 0;
    for (int i = 0; i < 3 || spent < 0.7; ++i) {
        const double step = multiply_step(products, rows, x, y);
        spent += step;
        if (step >= shortest_step) continue;
        shortest_step = step;
        best = products;
    }
    double least = 0;
    for (const StepProduct& product : best) {
        const double needed = std::max(product.bytes() / peaks.bandwidth, product.operations(rows) / products_peak);
        least += needed;
        std::printf(
            "decode step %s, %2d rows, %-11s %8.3f ms   %6.1f GB/s   %7.1f GFLOP/s   %5.1f %% of the attainable rate\n",
            std::string(name_of(dtype_of<T>)).c_str(), static_cast<int>(rows), product.name, product.seconds * 1e3,
            product.bytes() / product.seconds / 1e9, product.operations(rows) / product.seconds / 1e9,
            100 * needed / product.seconds);
    }
    std::printf("decode step %s, %2d rows, all         %8.3f ms %49.1f %% of the attainable rate\n",
                std::string(name_of(dtype_of<T>)).c_str(), static_cast<int>(rows), shortest_step * 1e3,
                100 * least / shortest_step);
}

template <class T>
void bench_linears(const Peaks& peaks, double products) {
    for (const int64_t rows : {1, 2, 4, 8, 13, 24}) bench_linear<T>(rows, 576, 3072, 60, peaks, products);
    for (const int64_t rows : {13, 24, 64, 256, 1024}) bench_linear<T>(rows, 576, 3072, 1, peaks, products);
    bench_linear<T>(1024, 576, 960, 1, peaks, products);
    bench_linear<T>(1024, 576, 576, 1, peaks, products);
    bench_linear<T>(1024, 1536, 576, 1, peaks, products);
    bench_linear<T>(13, 576, 49152, 1, peaks, products);
    bench_linear<T>(1024, 4096, 4096, 1, peaks, products);
}

void bench_elementwise(double peak) {
    const int64_t rows = 4096, dim = 576, inner = 1536;
    auto residual = random_values<float>(static_cast<size_t>(rows * dim), 1);
    const auto delta = random_values<bf16>(residual.size(), 2);
    const auto weight = random_values<float>(static_cast<size_t>(dim), 3);
    std::vector<bf16> out(residual.size());
    double seconds = shortest([&] {
        add_rms_norm(
            {rows, dim, 1e-5f, residual.data(), delta.data(), DType::bf16, weight.data(), out.data(), DType::bf16});
    });
    print_row("add_rms_norm bf16 4096 x 576", seconds, static_cast<double>(rows * dim * 12), "GB/s", peak);

    const std::vector<float> cosines(static_cast<size_t>(rows * 32), 0.6f), sines(cosines.size(), 0.8f);
    seconds = shortest([&] { rope({DType::bf16, rows, 9, 64, out.data(), dim, 0, cosines.data(), sines.data()}); });
    print_row("rope bf16 4096 x 9 x 64", seconds, static_cast<double>(rows * (dim * 4 + 64 * 4)), "GB/s", peak);

    const auto both = random_values<bf16>(static_cast<size_t>(rows * 2 * inner), 4);
    std::vector<bf16> product(static_cast<size_t>(rows * inner));
    seconds = shortest([&] {
        swiglu({DType::bf16, rows, inner, both.data(), both.data() + inner, 2 * inner, product.data(), 0});
    });
    print_row("swiglu bf16 4096 x 1536", seconds, static_cast<double>(rows * inner * 6), "GB/s", peak);
}

void usage(std::FILE* to) {
    std::fprintf(to,
                 "usage: kvscope_kernel_bench [prefill|decode|window|linear|stored|step|elementwise]...\n"
                 "                            without arguments: all parts\n"
                 "Compares the rates of the CPU kernels with the measured peak rates of the processor.\n"
                 "  OMP_NUM_THREADS=n   number of threads; with 1, times are the CPU time of the thread\n"
                 "  KVSCOPE_SIMD=level  generic, avx2, avx512 or avx512_bf16; limited by the processor\n");
}

int run(const std::vector<std::string>& parts) {
    const auto wanted = [&](const char* part) {
        return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
    };
    const SimdLevel level = simd_level();
    double load[1] = {-1};
    if (getloadavg(load, 1) != 1) load[0] = -1;
    std::printf("%d threads, SIMD level %s (processor: %s), load %.2f\n", omp_get_max_threads(), name_of(level),
                name_of(supported_simd_level()), load[0]);
    const Peaks peaks = measure_peaks();
    std::printf("peaks measured: vdpbf16ps %.0f GFLOP/s, f32 FMA %.0f GFLOP/s, reading memory %.1f GB/s\n",
                peaks.bf16 / 1e9, peaks.f32 / 1e9, peaks.bandwidth / 1e9);
    const Model model;
    const double bf16_peak = level == SimdLevel::avx512_bf16 ? peaks.bf16 : peaks.f32;
    if (wanted("prefill")) {
        for (const int64_t n : {512, 2048, 4096}) bench_prefill<bf16>(model, n, n, false, bf16_peak);
        bench_prefill<bf16>(model, 4096, 512, false, bf16_peak);
        bench_prefill<bf16>(model, 4096, 4096, true, bf16_peak);
        bench_prefill<bf16>(model, 4096, 512, true, bf16_peak);
        bench_prefill<bf16>({32, 8, 128}, 2048, 2048, false, bf16_peak);
        bench_prefill<float>(model, 4096, 4096, false, peaks.f32);
    }
    if (wanted("decode")) {
        bench_decode<bf16>(model, 1, 512, 120, peaks.bandwidth);
        bench_decode<bf16>(model, 1, 4096, 60, peaks.bandwidth);
        bench_decode<bf16>(model, 12, 512, 30, peaks.bandwidth);
        bench_decode<float>(model, 1, 4096, 60, peaks.bandwidth);
        bench_decode<bf16>(model, 1, 4096, 60, peaks.bandwidth, 40);
        bench_decode<bf16>(model, 1, 4096, 60, peaks.bandwidth, 0, true);
    }
    if (wanted("window")) {
        bench_window<bf16>(model, 4096, 32, peaks.f32);
        bench_window<float>(model, 4096, 32, peaks.f32);
    }
    if (wanted("stored")) {
        bench_stored_products<bf16>(peaks, bf16_peak);
        bench_stored_products<float>(peaks, peaks.f32);
    }
    if (wanted("step")) {
        for (const int64_t rows : {1, 13, 49}) bench_step<bf16>(rows, peaks, bf16_peak);
        for (const int64_t rows : {1, 13, 49}) bench_step<float>(rows, peaks, peaks.f32);
    }
    if (wanted("linear")) {
        bench_linears<bf16>(peaks, bf16_peak);
        bench_linears<float>(peaks, peaks.f32);
    }
    if (wanted("elementwise")) bench_elementwise(peaks.bandwidth);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> parts(argv + 1, argv + argc);
    for (const std::string& part : parts) {
        if (part == "-h" || part == "--help") return usage(stdout), 0;
        if (part != "prefill" && part != "decode" && part != "window" && part != "linear" && part != "stored" &&
            part != "step" && part != "elementwise") {
            std::fprintf(stderr,
                         "kvscope_kernel_bench: '%s' is not prefill, decode, window, linear, stored, step or "
                         "elementwise\n",
                         part.c_str());
            return usage(stderr), 2;
        }
    }
    try {
        return run(parts);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "kvscope_kernel_bench: %s\n", error.what());
        return 1;
    }
}
