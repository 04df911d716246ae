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
#include "policies/interface/memo.h"

namespace kvscope::policies {

/// L layers, H query heads, G KV heads, d the head size; r = H / G query heads read one KV head.
struct ModelShape {
    int n_layers = 0;
    int n_heads = 0;
    int n_kv_heads = 0;
    int head_dim = 0;
    int group() const { return n_heads / n_kv_heads; }
};

/// Whether entries are chosen (and stored) per KV head or, with K and V repeated, per query head.
enum class Granularity { kv_head, query_head };
enum class Positions { prompt, cache };
/// Which keys the window's softmax runs over: all visible ones (SnapKV) or only those before the window (ApertureKV).
enum class SoftmaxRange { visible, prefix };

/// Keys or values of one layer: element (g, j, c) at data + (g * head_stride + j * head_dim + c), post-RoPE keys.
struct EntriesView {
    const void* data = nullptr;  ///< in the processor's memory; nullptr where nobody needed it there (Needs::entries)
    kernels::DType dtype = kernels::DType::f32;
    int64_t head_stride = 0;                   ///< elements between KV heads
    const kernels::Backend* device = nullptr;  ///< the device that has them; nullptr: the processor
    const void* device_data = nullptr;         ///< there

    /// What computes on them, and where that reads them.
    const kernels::Backend& backend() const { return device ? *device : kernels::cpu_backend(); }
    const void* place() const { return device ? device_data : data; }
};

/// Numbers of query heads, each head's at data + head * stride.
struct HeadRows {
    const float* data = nullptr;
    int64_t stride = 0;
};

/// Entry (head, position) of a view as f32, into out (head_dim).
/// @throws std::logic_error for a view that is not in the processor's memory.
void read_entry(const EntriesView& view, int head, int64_t position, int head_dim, float* out);

/// What one layer's prefill left behind for the policies. Derived quantities are computed once and shared by all runs
/// that ask for them (thread-safe). Plain arrays; the owner keeps them alive.
class LayerObservations {
 public:
    int layer = 0;
    ModelShape shape;
    int64_t n_tokens = 0;                   ///< N
    int64_t sliding_window = 0;             ///< keys a query sees at most; 0: all
    EntriesView keys;                       ///< (G, N, d)
    EntriesView keys_before_rope;           ///< (G, N, d); no data where nobody needed them
    EntriesView values;                     ///< (G, N, d)
    std::span<const float> window_queries;  ///< (H, n_window, d) f32 post-RoPE, the last n_window prompt tokens
    int n_window = 0;
    std::span<const float> attention_sums;  ///< (H, N) over all prompt queries; empty where nobody needed them
    std::span<const float> hidden_states;   ///< (N, hidden); empty where nobody needed them
    /// (N, hidden) the hidden states as they are normalised for the projections; empty where nobody needed them
    std::span<const float> projection_inputs;
    /// (N) of PassPlan's token classification, NaN for tokens that are not the user's text; empty without.
    std::span<const float> token_probabilities;
    std::span<const float> answer_attention;  ///< (H, N) summed over the full cache's answer's queries; empty without

    /// Mean over the last `window` queries of softmax(q k / sqrt d) per query head: (H, N) for `visible`, where columns
    /// of the window hold its causal part; (H, N - window) for `prefix`. With lambda > 0 the queries are first spread
    /// out by ApertureKV's query diversification (its Eq. 9-11), per head. `window` is cut to N.
    /// @throws std::logic_error when more queries are asked for than were observed.
    const std::vector<float>& window_attention(int window, float lambda, SoftmaxRange range);

    /// (N): mean over the last `window` queries of the largest softmax weight (over all visible keys) that any KV head
    /// gives a key, a KV head's weight being the mean over its group (K-VEC's Eq. 13). `window` is cut to N.
    /// @throws std::logic_error when more queries are asked for than were observed.
    const std::vector<float>& window_peak(int window);

    /// Tokens behind the prompt, PassPlan's appended or generated ones: the M last queries (H, M, d), f32 post-RoPE, of
    /// K >= M keys (G, K, d) of the prompt's type. They replace earlier ones.
    /// @param all_keys (G, N + K, d) the prompt's and these, where they lie together
    void set_appended(std::span<const float> queries, EntriesView appended_keys, int n_queries, int n_keys,
                      EntriesView all_keys = {});
    /// Frees what was made of them, and the room for it. The next ones are set without it faster, where they are as
    /// many.
    void forget_appended();
    std::span<const float> appended_queries() const { return appended_queries_; }
    const EntriesView& appended_keys() const { return appended_keys_; }
    int n_appended() const { return n_appended_; }

    /// Mean over the appended queries of softmax(q k / sqrt d) at the prompt's keys (H, N), the softmax over all keys
    /// visible to a query: the prompt's, and the appended ones up to its own. Until the next ones are set.
    /// @throws std::logic_error where no token is appended.
    HeadRows appended_attention();

    /// Which of the attentions above were asked for.
    struct Asked {
        std::vector<std::tuple<int, float, SoftmaxRange>> window_attentions{};
        std::vector<int> window_peaks{};
        bool appended_attention = false;
    };
    Asked asked();
    /// Works out those that were asked for of another layer, as they are likely to be of this one, while a device has
    /// nothing else to do.
    void work_out(const Asked& of_another);

    /// What several runs make of these observations alike, worked out by the one that asks first: `Memo::get`. What
    /// depends on a run's budget, or on what a policy saw in other layers, is not for it.
    template <class T>
    std::shared_ptr<const T> shared(const std::string& key, const std::function<T()>& make) {
        return shared_.get(key, make);
    }

    /// Frees all window attentions, all window peaks, and all that is shared, but the n of each that were asked for
    /// last; references to the others become invalid.
    void keep_latest(size_t n);

 private:
    struct Derived {
        std::vector<float> values;
        uint64_t asked = 0;  ///< the place of the last time among all times
    };

    /// The keys of both, the prompt's and the appended ones: (G, N + K, d).
    EntriesView joined_keys();
    /// `window` cut to N. @throws std::logic_error when more queries are asked for than were observed.
    int observed_window(int window) const;
    /// Of the last w prompt queries, as they were observed, over all keys; where to is the caller's.
    kernels::WindowAttention problem_of(int64_t w) const;
    /// Where the keys lie; queries and mean are in the processor's memory.
    using Kernel = void (kernels::Backend::*)(const kernels::WindowAttention&) const;
    static void run(Kernel kernel, const kernels::Backend& backend, const kernels::WindowAttention& problem,
                    size_t mean_size);

    std::span<const float> appended_queries_;
    EntriesView appended_keys_;
    int n_appended_ = 0;
    int n_appended_keys_ = 0;
    EntriesView all_keys_;
    /// The prompt's keys and room for the appended ones behind them, to be used again by the next of so many.
    std::unique_ptr<kernels::DeviceArray> joined_;
    int n_joined_ = 0;
    /// Means over the appended queries at all keys, (H, N + K), and whether they are those of the present queries.
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
