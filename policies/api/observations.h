#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/backend.h"
#include "kernels/types.h"
#include "kernels/window_attention.h"
#include "policies/api/memo.h"

namespace kvscope::policies {

/// Dimensions of a model: L layers, H query heads, G KV heads, head size d. r = H / G query heads read one KV head.
struct ModelShape {
    int n_layers = 0;
    int n_heads = 0;
    int n_kv_heads = 0;
    int head_dim = 0;
    [[nodiscard]] int group() const { return n_heads / n_kv_heads; }
};

/// Whether entries are chosen and stored per KV head, or per query head with K and V repeated.
enum class Granularity { kv_head, query_head };
enum class Positions { prompt, cache };
/// Keys in the softmax of the window's attention: all visible keys (SnapKV) or only the prefix (ApertureKV).
enum class SoftmaxRange { visible, prefix };

/// Keys (after RoPE unless stated otherwise) or values of one layer. Element c of entry j in head g is at index g *
/// head_stride + j * head_dim + c.
struct EntriesView {
    const void* data = nullptr;  ///< in host memory; nullptr if no policy needs it there (Needs::entries)
    kernels::DType dtype = kernels::DType::f32;
    int64_t head_stride = 0;                   ///< elements between KV heads
    const kernels::Backend* device = nullptr;  ///< device that holds the data; nullptr for the processor
    const void* device_data = nullptr;         ///< address on `device`

    [[nodiscard]] const kernels::Backend& backend() const { return device ? *device : kernels::cpu_backend(); }
    [[nodiscard]] const void* place() const { return device ? device_data : data; }
};

struct HeadRows {
    const float* data = nullptr;
    int64_t stride = 0;
};

/// Copies an entry as f32 to out (head_dim). @throws std::logic_error if the view has no data in host memory
void read_entry(const EntriesView& view, int head, int64_t position, int head_dim, float* out);

/// Observations of one layer's prefill. Runs share derived quantities, and the methods that compute these quantities
/// are thread-safe. The arrays belong to the caller and must outlive this object.
class LayerObservations {
 public:
    int layer = 0;
    ModelShape shape;
    int64_t n_tokens = 0;          ///< N, the number of prompt tokens
    int64_t sliding_window = 0;    ///< keys that a query sees at most; 0 for all
    EntriesView keys;              ///< shape (G, N, d)
    EntriesView keys_before_rope;  ///< (G, N, d); no data if no policy needs them
    EntriesView values;            ///< shape (G, N, d)
    /// (H, n_window, d) f32 queries of the last n_window prompt tokens, after RoPE.
    std::span<const float> window_queries;
    int n_window = 0;
    std::span<const float> attention_sums;  ///< (H, N) sums over all prompt queries; empty if no policy needs them
    std::span<const float> hidden_states;   ///< (N, hidden); empty if no policy needs them
    /// (N, hidden) normalized inputs of the projections, or empty if no policy needs them.
    std::span<const float> projection_inputs;
    /// (N) probabilities from the token classifier, NaN for tokens outside the user's text. Empty without a classifier.
    std::span<const float> token_probabilities;
    /// (H, N) attention summed over the queries of the full cache's answer, or empty if no policy needs it.
    std::span<const float> answer_attention;

    /// Returns the mean of softmax(q k / sqrt d) over the last `window` queries (at most N): (H, N) for `visible`, (H,
    /// N - window) for `prefix`. With lambda > 0, applies ApertureKV's query diversification (Eq. 9-11 of its paper).
    /// @throws std::logic_error if fewer queries were observed
    const std::vector<float>& window_attention(int window, float lambda, SoftmaxRange range);

    /// Returns K-VEC's Eq. 13 for each token (N). For each of the last `window` queries (at most N), takes the largest
    /// of the KV heads' mean attentions, and averages these maxima. @throws as window_attention()
    const std::vector<float>& window_peak(int window);

    /// Sets the appended or generated tokens. `queries` (H, M, d) are f32 after RoPE and belong to the last M of K >= M
    /// tokens. `appended_keys` (G, K, d) have the type of the prompt's keys.
    /// @param all_keys (G, N + K, d) keys of the prompt and these tokens, if they are contiguous
    void set_appended(std::span<const float> queries, EntriesView appended_keys, int n_queries, int n_keys,
                      EntriesView all_keys = {});
    /// Frees all data about the appended tokens. Otherwise, an equal number of new tokens reuses the memory.
    void forget_appended();
    [[nodiscard]] std::span<const float> appended_queries() const { return appended_queries_; }
    [[nodiscard]] const EntriesView& appended_keys() const { return appended_keys_; }
    [[nodiscard]] int n_appended() const { return n_appended_; }

    /// Returns the mean of softmax(q k / sqrt d) over the appended queries, for the prompt's keys (H, N). The softmax
    /// also covers the appended keys that a query sees. Valid until the next set_appended().
    HeadRows appended_attention();

    struct Asked {
        std::vector<std::tuple<int, float, SoftmaxRange>> window_attentions{};
        std::vector<int> window_peaks{};
        bool appended_attention = false;
    };
    [[nodiscard]] Asked asked();
    /// Computes attentions before runs request them. `of_another` lists the requests to another layer.
    void work_out(const Asked& of_another);

    /// Returns a value that several runs share (Memo::get). The value must not depend on the budget or on other layers.
    template <class T>
    [[nodiscard]] std::shared_ptr<const T> shared(const std::string& key, const std::function<T()>& make) {
        return shared_.get(key, make);
    }

    /// Frees derived quantities except the n most recently requested ones of each kind. Invalidates references.
    void keep_latest(size_t n);

 private:
    struct Derived {
        std::vector<float> values;
        uint64_t asked = 0;  ///< sequence number of the latest request
    };

    [[nodiscard]] EntriesView joined_keys();
    [[nodiscard]] int observed_window(int window) const;
    /// Returns the kernel's input for the last w prompt queries and all keys. Leaves the output unset.
    [[nodiscard]] kernels::WindowAttention problem_of(int64_t w) const;
    using Kernel = void (kernels::Backend::*)(const kernels::WindowAttention&) const;
    static void run(Kernel kernel, const kernels::Backend& backend, const kernels::WindowAttention& problem,
                    size_t mean_size);

    std::span<const float> appended_queries_;
    EntriesView appended_keys_;
    int n_appended_ = 0;
    int n_appended_keys_ = 0;
    EntriesView all_keys_;
    /// Keys of the prompt, followed by space for appended keys.
    std::unique_ptr<kernels::DeviceArray> joined_;
    int n_joined_ = 0;
    /// (H, N + K) mean attention of the appended queries to all keys.
    std::unique_ptr<float[]> appended_attention_;
    size_t n_appended_attention_ = 0;
    bool has_appended_attention_ = false;
    std::mutex mutex_;
    std::map<std::tuple<int, float, SoftmaxRange>, Derived> window_attention_;
    std::map<int, Derived> window_peak_;
    Memo shared_;
    uint64_t n_asked_ = 0;
};

}  // namespace kvscope::policies
