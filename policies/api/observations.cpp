#include "policies/api/observations.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/bf16.h"
#include "kernels/diversify_queries.h"

namespace kvscope::policies {

namespace {

template <class T>
void read(const EntriesView& view, int64_t first, int n, float* out) {
    const T* entry = static_cast<const T*>(view.data) + first;
    for (int c = 0; c < n; ++c) out[c] = kernels::to_float(entry[c]);
}

/// Returns a lock that serializes calls to an accelerator. The CPU needs no lock.
std::unique_lock<std::mutex> turn_of(const kernels::Backend& backend) {
    if (backend.is_processor()) return {};
    return std::unique_lock(backend.turns());
}

}  // namespace

void read_entry(const EntriesView& view, int head, int64_t position, int head_dim, float* out) {
    if (view.data == nullptr) throw std::logic_error("entry is not in host memory: the policy must set Needs::entries");
    if (view.dtype == kernels::DType::f16) throw std::logic_error("entries can be read as f32 or bf16 only");
    const int64_t first = head * view.head_stride + position * head_dim;
    if (view.dtype == kernels::DType::bf16) {
        read<kernels::bf16>(view, first, head_dim, out);
    } else {
        read<float>(view, first, head_dim, out);
    }
}

int LayerObservations::observed_window(int window) const {
    const int64_t w = std::min<int64_t>(window, n_tokens);
    if (w > n_window) {
        throw std::logic_error("layer " + std::to_string(layer) + ": the attention of " + std::to_string(w) +
                               " window queries was requested, but only " + std::to_string(n_window) +
                               " were observed");
    }
    return static_cast<int>(w);
}

kernels::WindowAttention LayerObservations::problem_of(int64_t w) const {
    kernels::WindowAttention problem;
    problem.n_heads = shape.n_heads;
    problem.n_kv_heads = shape.n_kv_heads;
    problem.head_dim = shape.head_dim;
    problem.window = static_cast<int>(w);
    problem.n_tokens = n_tokens;
    problem.queries = window_queries.data() + (n_window - w) * shape.head_dim;
    problem.query_head_stride = int64_t{n_window} * shape.head_dim;
    problem.keys = keys.place();
    problem.keys_dtype = keys.dtype;
    problem.key_head_stride = keys.head_stride;
    problem.sliding_window = sliding_window;
    return problem;
}

void LayerObservations::run(Kernel kernel, const kernels::Backend& backend, const kernels::WindowAttention& problem,
                            size_t mean_size) {
    if (backend.is_processor()) return (backend.*kernel)(problem);
    const auto turn = turn_of(backend);
    const int64_t stride =
        problem.query_head_stride ? problem.query_head_stride : int64_t{problem.window} * problem.head_dim;
    const auto n_queries =
        static_cast<size_t>((problem.n_heads - 1) * stride + int64_t{problem.window} * problem.head_dim);
    const kernels::DeviceArray queries(backend, n_queries * sizeof(float)), mean(backend, mean_size * sizeof(float));
    backend.upload(queries.data(), problem.queries, n_queries * sizeof(float));
    kernels::WindowAttention there = problem;
    there.queries = static_cast<const float*>(queries.data());
    there.mean = static_cast<float*>(mean.data());
    (backend.*kernel)(there);
    backend.download(problem.mean, mean.data(), mean_size * sizeof(float));
}

const std::vector<float>& LayerObservations::window_attention(int window, float lambda, SoftmaxRange range) {
    const int64_t w = observed_window(window);
    const std::lock_guard lock(mutex_);
    auto [entry, is_new] = window_attention_.try_emplace({static_cast<int>(w), lambda, range});
    entry->second.asked = ++n_asked_;
    std::vector<float>& mean = entry->second.values;
    const int64_t columns = range == SoftmaxRange::prefix ? n_tokens - w : n_tokens;
    if (!is_new || columns == 0) return mean;

    const int64_t d = shape.head_dim;
    const int64_t observed = n_window * d;
    try {
        std::vector<float> diversified;
        if (lambda != 0.0f) {
            diversified.resize(static_cast<size_t>(shape.n_heads * w * d));
            for (int64_t h = 0; h < shape.n_heads; ++h) {
                kernels::diversify_queries(window_queries.data() + h * observed + (n_window - w) * d, w, d, lambda,
                                           diversified.data() + h * w * d);
            }
        }
        mean.resize(static_cast<size_t>(shape.n_heads * columns));
        kernels::WindowAttention problem = problem_of(w);
        if (!diversified.empty()) {
            problem.queries = diversified.data();
            problem.query_head_stride = w * d;
        }
        problem.prefix_only = range == SoftmaxRange::prefix;
        problem.mean = mean.data();
        run(&kernels::Backend::window_attention, keys.backend(), problem, mean.size());
    } catch (...) {
        window_attention_.erase(entry);
        throw;
    }
    return mean;
}

void LayerObservations::set_appended(std::span<const float> queries, EntriesView keys_of_appended, int n_queries,
                                     int n_keys, EntriesView all_keys) {
    const std::lock_guard lock(mutex_);
    appended_queries_ = queries;
    appended_keys_ = keys_of_appended;
    n_appended_ = n_queries;
    n_appended_keys_ = n_keys;
    all_keys_ = all_keys;
    has_appended_attention_ = false;
    shared_.keep_latest(0);
}

void LayerObservations::forget_appended() {
    set_appended({}, {}, 0, 0);
    const std::lock_guard lock(mutex_);
    appended_attention_.reset();
    n_appended_attention_ = 0;
    const auto turn = turn_of(keys.backend());
    joined_.reset();
}

EntriesView LayerObservations::joined_keys() {
    if (all_keys_.place()) return all_keys_;
    const auto turn = turn_of(keys.backend());
    const auto entry = static_cast<size_t>(shape.head_dim) * kernels::size_of(keys.dtype);
    const int64_t n_all = n_tokens + n_appended_keys_;
    const kernels::Backend& backend = keys.backend();
    const bool has_prompt = joined_ && n_joined_ == n_appended_keys_;
    if (!has_prompt) {
        joined_.reset();
        joined_ =
            std::make_unique<kernels::DeviceArray>(backend, static_cast<size_t>(shape.n_kv_heads * n_all) * entry);
        n_joined_ = n_appended_keys_;
    }
    std::vector<kernels::RowCopy> copies;
    const auto copy = [&](const EntriesView& from, int64_t head, int64_t first, int64_t n) {
        copies.push_back({.from = static_cast<const char*>(from.place()) +
                                  static_cast<size_t>(head * from.head_stride) * kernels::size_of(from.dtype),
                          .from_stride = entry,
                          .to = static_cast<char*>(joined_->data()) + static_cast<size_t>(head * n_all + first) * entry,
                          .to_stride = entry,
                          .n_rows = n,
                          .row_bytes = entry});
    };
    for (int64_t g = 0; g < shape.n_kv_heads; ++g) {
        if (!has_prompt) copy(keys, g, 0, n_tokens);
        copy(appended_keys_, g, n_tokens, n_appended_keys_);
    }
    backend.copy_rows(copies);
    EntriesView all{.dtype = keys.dtype, .head_stride = n_all * shape.head_dim, .device = keys.device};
    (keys.device ? all.device_data : all.data) = joined_->data();
    return all;
}

HeadRows LayerObservations::appended_attention() {
    if (n_appended_ == 0) throw std::logic_error("layer " + std::to_string(layer) + ": no token is appended");
    const std::lock_guard lock(mutex_);
    const int64_t n_all = n_tokens + n_appended_keys_;
    if (has_appended_attention_) return {appended_attention_.get(), n_all};
    const auto size = static_cast<size_t>(shape.n_heads * n_all);
    if (size != n_appended_attention_) {
        appended_attention_.reset();
        n_appended_attention_ = 0;
        appended_attention_ = std::make_unique_for_overwrite<float[]>(size);
        n_appended_attention_ = size;
    }
    const EntriesView all = joined_keys();
    run(&kernels::Backend::window_attention, all.backend(),
        {.n_heads = shape.n_heads,
         .n_kv_heads = shape.n_kv_heads,
         .head_dim = shape.head_dim,
         .window = n_appended_,
         .n_tokens = n_all,
         .queries = appended_queries_.data(),
         .keys = all.place(),
         .keys_dtype = all.dtype,
         .key_head_stride = all.head_stride,
         .sliding_window = sliding_window,
         .mean = appended_attention_.get()},
        size);
    has_appended_attention_ = true;
    return {appended_attention_.get(), n_all};
}

const std::vector<float>& LayerObservations::window_peak(int window) {
    const int64_t w = observed_window(window);
    const std::lock_guard lock(mutex_);
    auto [entry, is_new] = window_peak_.try_emplace(static_cast<int>(w));
    entry->second.asked = ++n_asked_;
    std::vector<float>& peak = entry->second.values;
    if (!is_new) return peak;
    try {
        peak.resize(static_cast<size_t>(n_tokens));
        kernels::WindowAttention problem = problem_of(w);
        problem.mean = peak.data();
        run(&kernels::Backend::window_attention_head_max, keys.backend(), problem, peak.size());
    } catch (...) {
        window_peak_.erase(entry);
        throw;
    }
    return peak;
}

LayerObservations::Asked LayerObservations::asked() {
    const std::lock_guard lock(mutex_);
    Asked all{.appended_attention = has_appended_attention_};
    for (const auto& [what, derived] : window_attention_) all.window_attentions.push_back(what);
    for (const auto& [window, derived] : window_peak_) all.window_peaks.push_back(window);
    return all;
}

void LayerObservations::work_out(const Asked& of_another) {
    for (const auto& [window, lambda, range] : of_another.window_attentions) window_attention(window, lambda, range);
    for (const int window : of_another.window_peaks) window_peak(window);
    if (of_another.appended_attention) appended_attention();
}

void LayerObservations::keep_latest(size_t n) {
    const std::lock_guard lock(mutex_);
    const auto trim = [n](auto& all) {
        while (all.size() > n) {
            all.erase(std::min_element(all.begin(), all.end(),
                                       [](const auto& a, const auto& b) { return a.second.asked < b.second.asked; }));
        }
    };
    trim(window_attention_);
    trim(window_peak_);
    shared_.keep_latest(n);
}

}  // namespace kvscope::policies
