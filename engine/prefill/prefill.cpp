#include "engine/prefill/prefill.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>

#include "engine/common/engine_error.h"
#include "engine/common/work_clock.h"
#include "engine/device/compute_device.h"
#include "engine/device/cpu_tensor_memory_pool.h"
#include "engine/device/tensor_functions.h"
#include "engine/prefill/prefill_attention.h"
#include "engine/prefill/projection_measures.h"
#include "kernels/bf16.h"
#include "kernels/rms_norm.h"

namespace kvscope::engine {
namespace {

/// Time at which a card finishes the work requested so far; without a card, the time of construction.
class DeviceTimestamp {
 public:
    explicit DeviceTimestamp(const ComputeDevice& device);
    /// Returns the seconds until `later`, without pauses of this thread's work. The time `later` must have passed.
    [[nodiscard]] double until(const DeviceTimestamp& later) const;

 private:
    WorkClock::time_point time_ = WorkClock::now();
    WorkClock::duration paused_ = WorkClock::paused();
    std::optional<c10::Event> event_;  ///< set only on a card
};

DeviceTimestamp::DeviceTimestamp(const ComputeDevice& device) {
    if (!device.place.is_cuda()) return;
    event_.emplace(device.place.type(), c10::EventFlag::BACKEND_DEFAULT);  // records its time
    event_->record(c10::impl::VirtualGuardImpl(device.place.type()).getStream(device.place));
}

double DeviceTimestamp::until(const DeviceTimestamp& later) const {
    using Seconds = std::chrono::duration<double>;
    if (!event_) return Seconds(later.time_ - time_).count();
    return event_->elapsedTime(*later.event_) / 1000 - Seconds(later.paused_ - paused_).count();
}

/// Large chunks use all cores and expand weights less often. Small chunks fit in the processor's caches.
int64_t tokens_of_chunk(const Transformer& model) { return model.device().is_processor() ? 1024 : 4096; }

void copy_queries(const Transformer& model, const at::Tensor& qkv, std::vector<float>& target, int64_t n_total,
                  int64_t first) {
    const at::Tensor rows = qkv.cpu();
    const auto shape = model.shape();
    const int64_t d = shape.head_dim, n = rows.size(0);
    for (int h = 0; h < shape.n_heads; ++h) {
        for (int64_t i = 0; i < n; ++i) {
            float* to = target.data() + (h * n_total + first + i) * d;
            const int64_t from = i * rows.size(1) + h * d;
            if (model.dtype() == kernels::DType::bf16) {
                const auto* source = static_cast<const kernels::bf16*>(rows.const_data_ptr()) + from;
                for (int64_t c = 0; c < d; ++c) to[c] = kernels::to_float(source[c]);
            } else {
                std::memcpy(to, rows.const_data_ptr<float>() + from, static_cast<size_t>(d) * sizeof(float));
            }
        }
    }
}

class Pass {
 public:
    Pass(const Transformer& model, const PrefillRequest& request)
        : model_(model),
          request_(request),
          shape_(model.shape()),
          n_tokens_(static_cast<int64_t>(request.ids.size())),
          chunk_tokens_(tokens_of_chunk(model)),
          n_layers_(request.n_layers < 0 ? shape_.n_layers : std::min(request.n_layers, shape_.n_layers)),
          n_window_(static_cast<int>(std::min<int64_t>(request.needs.window_queries, n_tokens_))),
          tails_(model, request.tails) {
        residual_ = model.embed(request.ids);
        std::vector<int64_t> positions(static_cast<size_t>(n_tokens_));
        std::iota(positions.begin(), positions.end(), int64_t{0});
        rotation_ = model.rotation(positions);
        if (request.projections)
            measures_.emplace(model.on_processor(), n_tokens_, request.modes, *request.projections);
        if (n_window_ > 0) window_queries_.resize(static_cast<size_t>(shape_.n_heads) * n_window_ * shape_.head_dim);
        if (request.needs.keys_before_rope)
            plain_ = DenseLayer::allocate(shape_, n_tokens_, model.scalar_type(), model.device());
        if (request.needs.attention_sums)
            sums_ = at::empty({shape_.n_heads, n_tokens_}, model.options().dtype(at::kDouble));
    }

    int n_layers() const { return n_layers_; }
    int64_t n_chunks() const { return (n_tokens_ + chunk_tokens_ - 1) / chunk_tokens_; }
    double recording_seconds() const { return recording_seconds_; }
    double unseen_seconds() const { return unseen_seconds_; }

    /// Whether the device may compute a layer while the processor examines the preceding one.
    bool runs_ahead() const {
        const policies::Needs& needs = request_.needs;
        return !model_.device().is_processor() && !measures_ && !needs.hidden_states && !needs.projection_inputs;
    }

    void begin_layer(int layer, Progress& progress, int64_t& steps) {
        const WorkClock::time_point start = WorkClock::now();
        auto& under_way = under_way_.emplace(model_.device());
        under_way.dense =
            DenseLayer::allocate(shape_, n_tokens_ + request_.room, model_.scalar_type(), model_.device());
        if (request_.needs.hidden_states) {
            const at::Tensor here = residual_room_.copy(residual_);
            hidden_.assign(here.const_data_ptr<float>(), here.const_data_ptr<float>() + here.numel());
        }
        if (request_.needs.projection_inputs) normalise_inputs(layer);
        if (sums_.defined()) sums_.zero_();
        if (measures_) recorded([&] { measures_->begin_layer(layer); });
        for (int64_t begin = 0; begin < n_tokens_; begin += chunk_tokens_) {
            progress.throw_if_stopped();
            run_chunk(layer, begin, std::min(chunk_tokens_, n_tokens_ - begin), under_way.dense);
            progress.advance(++steps);
        }
        under_way.end.emplace(model_.device());
        under_way.seconds_seen = WorkClock::seconds_since(start);
    }

    bool has_begun() const { return under_way_.has_value(); }

    DenseLayer end_layer(int layer) {
        UnderWay& under_way = *under_way_;
        const WorkClock::time_point start = WorkClock::now();
        model_.backend().wait();
        under_way.seconds_seen += WorkClock::seconds_since(start);
        unseen_seconds_ += std::max(0.0, under_way.begin.until(*under_way.end) - under_way.seconds_seen);
        DenseLayer dense = std::move(under_way.dense);
        recorded([&] {
            for (const auto& [first, queries] : under_way.window)
                copy_queries(model_, queries, window_queries_, n_window_, first);
        });
        if (measures_) recorded([&] { measures_->finish_layer(); });
        if (brings_entries(layer)) recorded([&] { dense.bring_to_processor(entries_room_); });
        bring_observations();
        under_way_.reset();
        return dense;
    }

    std::unique_ptr<policies::LayerObservations> observe(int layer, const DenseLayer& dense) {
        const auto start = WorkClock::now();
        auto observations = std::make_unique<policies::LayerObservations>();
        observations->layer = layer;
        observations->shape = shape_;
        observations->n_tokens = n_tokens_;
        observations->sliding_window = model_.config().sliding_window[static_cast<size_t>(layer)];
        observations->keys = dense.keys_view();
        observations->values = dense.values_view();
        if (plain_keys_.defined()) observations->keys_before_rope = DenseLayer::entries_view(plain_keys_, {});
        observations->window_queries = window_queries_;
        observations->n_window = n_window_;
        observations->attention_sums = sums_f32_;
        observations->hidden_states = hidden_;
        observations->projection_inputs = inputs_;
        recording_seconds_ += WorkClock::seconds_since(start);
        return observations;
    }

    std::vector<std::unique_ptr<policies::LayerObservations>> run_tails(int layer, const DenseLayer& dense) {
        std::vector<std::unique_ptr<policies::LayerObservations>> tails;
        if (request_.tails.empty()) return tails;
        if (!tail_dense_.keys.defined())
            tail_dense_ =
                DenseLayer::allocate(shape_, n_tokens_ + tails_.capacity(), model_.scalar_type(), model_.device());
        tail_dense_.keys.narrow(1, 0, n_tokens_).copy_(dense.keys.narrow(1, 0, n_tokens_));
        tail_dense_.values.narrow(1, 0, n_tokens_).copy_(dense.values.narrow(1, 0, n_tokens_));
        for (size_t tail = 0; tail < request_.tails.size(); ++tail) tails.push_back(run_tail(layer, tail, dense));
        return tails;
    }

    std::unique_ptr<policies::LayerObservations> run_tail(int layer, size_t tail, const DenseLayer& dense) {
        const at::Tensor qkv = tails_.run_layer(layer, tail, tail_dense_, n_tokens_).qkv;
        const int64_t n = qkv.size(0);
        auto& queries = tail_queries_[tail];
        queries.resize(static_cast<size_t>(shape_.n_heads * n * shape_.head_dim));
        copy_queries(model_, qkv, queries, n, 0);
        DenseLayer& own = tail_entries_[tail];
        own = {.keys = tail_dense_.keys.narrow(1, n_tokens_, n).contiguous(), .device = model_.device()};
        if (brings_entries(layer)) own.bring_to_processor();
        auto observations = observe(layer, dense);
        observations->set_appended(queries, own.keys_view(), static_cast<int>(n), static_cast<int>(n),
                                   all_keys_of_tail());
        return observations;
    }

    /// Returns the keys of prompt and tail; empty if there are several tails, because all tails use the same memory.
    policies::EntriesView all_keys_of_tail() const {
        if (request_.tails.size() > 1) return {};
        return DenseLayer::entries_view(tail_dense_.keys, tail_dense_.device);
    }

    void prepare_tails() {
        tail_queries_.resize(request_.tails.size());
        tail_entries_.resize(request_.tails.size());
    }

    at::Tensor last_residual() const { return residual_.narrow(0, n_tokens_ - 1, 1); }

 private:
    template <class Work>
    void recorded(Work work) {
        model_.backend().wait();  // so that only `work` is measured
        const auto start = WorkClock::now();
        work();
        recording_seconds_ += WorkClock::seconds_since(start);
    }

    bool brings_entries(int layer) const {
        const auto& some = request_.entry_layers;
        return request_.needs.entries || std::find(some.begin(), some.end(), layer) != some.end();
    }

    void run_chunk(int layer, int64_t begin, int64_t n, DenseLayer& dense) {
        at::Tensor residual = residual_.narrow(0, begin, n);
        at::Tensor qkv = model_.project(layer, residual);
        if (measures_) recorded([&] { measures_->add(residual_room_.copy(residual), qkv_room_.copy(qkv)); });
        const Transformer::Rotation rotation{rotation_.cosines.narrow(0, begin, n),
                                             rotation_.sines.narrow(0, begin, n)};
        if (plain_.keys.defined()) plain_.write_keys(shape_, qkv, begin);
        model_.rotate(qkv, rotation);
        dense.write(shape_, qkv, begin);

        const int64_t window_begin = n_tokens_ - n_window_;
        if (n_window_ > 0 && begin + n > window_begin) {
            const int64_t first = std::max(begin, window_begin);
            const at::Tensor queries =
                qkv.narrow(0, first - begin, begin + n - first).narrow(1, 0, int64_t{shape_.n_heads} * shape_.head_dim);
            under_way_->window.emplace_back(first - window_begin, queries.clone(at::MemoryFormat::Contiguous));
        }

        if (layer == shape_.n_layers - 1) {
            finish_last_layer(qkv, begin, dense);
            return;
        }
        const at::Tensor out = compute_causal_attention(model_, layer, qkv, dense,
                                                        {.n = n,
                                                         .first = begin,
                                                         .sums = sums_.defined() ? sums_.data_ptr<double>() : nullptr,
                                                         .sums_stride = n_tokens_});
        model_.finish_layer(layer, out, residual);
    }

    void bring_observations() {
        plain_keys_.reset();  // releases the memory for reuse
        if (plain_.keys.defined()) plain_keys_ = plain_room_.copy(plain_.keys);
        if (!sums_.defined()) return;
        const at::Tensor here = sums_room_.copy(sums_);
        sums_f32_.assign(here.const_data_ptr<double>(), here.const_data_ptr<double>() + here.numel());
    }

    /// Computes the output of the prompt's last token only, and attention sums of all tokens if requested.
    void finish_last_layer(const at::Tensor& qkv, int64_t begin, const DenseLayer& dense) {
        const int layer = shape_.n_layers - 1;
        const int64_t n = qkv.size(0);
        const bool ends = begin + n == n_tokens_;
        if (!ends && !sums_.defined()) return;
        const int64_t row = sums_.defined() ? 0 : n - 1;
        const at::Tensor out = compute_causal_attention(model_, layer, qkv, dense,
                                                        {.row = row,
                                                         .n = n - row,
                                                         .first = begin + row,
                                                         .sums = sums_.defined() ? sums_.data_ptr<double>() : nullptr,
                                                         .sums_stride = n_tokens_,
                                                         .sums_alone = !ends});
        if (!ends) return;
        at::Tensor last = last_residual();
        model_.finish_layer(layer, out.narrow(0, n - 1 - row, 1), last);
    }

    /// Computes the inputs of the layer's projections in f32, without rounding to the model's type.
    void normalise_inputs(int layer) {
        const auto start = WorkClock::now();
        inputs_.resize(static_cast<size_t>(residual_.numel()));
        const at::Tensor residual = residual_room_.copy(residual_);
        const auto& weights = model_.on_processor().weights().layers[static_cast<size_t>(layer)];
        kernels::rms_norm({.n_rows = n_tokens_,
                           .dim = model_.config().hidden_size,
                           .eps = model_.config().rms_norm_eps,
                           .x = residual.const_data_ptr(),
                           .weight = weights.input_norm.const_data_ptr<float>(),
                           .out = inputs_.data(),
                           .out_dtype = kernels::DType::f32});
        recording_seconds_ += WorkClock::seconds_since(start);
    }

    struct UnderWay {
        DeviceTimestamp begin;
        std::optional<DeviceTimestamp> end{};
        DenseLayer dense{};
        std::vector<std::pair<int64_t, at::Tensor>> window{};  ///< queries with their index in the window
        double seconds_seen = 0;                               ///< time in begin_layer and in waiting for the layer

        explicit UnderWay(const ComputeDevice& device) : begin(device) {}
    };

    TensorMemoryPool memory_;
    const Transformer& model_;
    const PrefillRequest& request_;
    policies::ModelShape shape_;
    int64_t n_tokens_, chunk_tokens_;
    int n_layers_;
    int n_window_;
    PseudoTokenPass tails_;
    DenseLayer tail_dense_;
    DenseLayer::Room entries_room_;
    HostBuffer residual_room_, qkv_room_, plain_room_, sums_room_;
    at::Tensor residual_;
    DenseLayer plain_;       ///< keys (G, N, d) of a layer before RoPE; undefined if not needed
    at::Tensor plain_keys_;  ///< copy of `plain_` in the processor's memory
    Transformer::Rotation rotation_;
    std::vector<float> window_queries_;
    at::Tensor sums_;  ///< (H, N) f64
    std::vector<float> sums_f32_;
    std::vector<float> hidden_;
    std::vector<float> inputs_;  ///< inputs of the layer's projections
    std::optional<ProjectionMeasures> measures_;
    double recording_seconds_ = 0, unseen_seconds_ = 0;
    std::optional<UnderWay> under_way_;
    std::vector<std::vector<float>> tail_queries_;
    std::vector<DenseLayer> tail_entries_;  // keys only
};

}  // namespace

PrefillResult prefill(const Transformer& model, const PrefillRequest& request, const OnLayer& on_layer,
                      Progress& progress, const OnLayer& meanwhile) {
    const auto n = static_cast<int64_t>(request.ids.size());
    if (n == 0) throw UsageError("the prompt is empty: write at least one token");
    if (n > model.config().context_length)
        throw UsageError("the prompt has " + std::to_string(n) + " tokens, but the model's context is only " +
                         std::to_string(model.config().context_length) + ": shorten the prompt");
    const auto start = WorkClock::now();
    double outside = 0;
    Pass pass(model, request);
    pass.prepare_tails();
    progress.begin("prefill", pass.n_layers() * pass.n_chunks(), pass.n_chunks() > 1 ? "layers × chunks" : "layers");
    PrefillResult result;
    int64_t steps = 0;
    for (int layer = 0; layer < pass.n_layers(); ++layer) {
        if (!pass.has_begun()) pass.begin_layer(layer, progress, steps);
        DenseLayer dense = pass.end_layer(layer);
        const auto tails = pass.run_tails(layer, dense);
        const auto prompt = pass.observe(layer, dense);
        PrefillLayer view{layer, *prompt, tails, dense};
        const auto show = [&](const OnLayer& call) {
            if (!call) return;
            const auto called = WorkClock::now();
            call(view);
            outside += WorkClock::seconds_since(called);
        };
        if (on_layer) model.backend().wait();  // so that the prefill's own work does not count as time of the callback
        show(on_layer);
        if (meanwhile && pass.runs_ahead() && layer + 1 < pass.n_layers()) pass.begin_layer(layer + 1, progress, steps);
        show(meanwhile);
        if (request.keep_cache) result.cache.push_back(std::move(dense));
    }
    if (pass.n_layers() == model.shape().n_layers) {
        const at::Tensor logits = model.logits(pass.last_residual());
        result.last_logits.assign(logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel());
    }
    result.recording_seconds = pass.recording_seconds();
    result.seconds = WorkClock::seconds_since(start) - outside - result.recording_seconds + pass.unseen_seconds();
    return result;
}

void read_layers(const Transformer& model, std::span<const int32_t> ids, int window_queries, Progress& progress,
                 const OnLayer& on_layer) {
    PrefillRequest request{.ids = ids, .needs = {}, .modes = {}, .tails = {}, .keep_cache = false};
    request.needs.keys_before_rope = true;
    request.needs.entries = true;
    request.needs.window_queries = window_queries;
    WithoutSteps inner(progress);
    prefill(model.on_processor(), request, on_layer, inner);
}

std::vector<float> numbers_by_channel(const policies::EntriesView& view, int n_heads, int head_dim, int64_t first,
                                      int64_t end) {
    const int64_t n = end - first;
    std::vector<float> numbers(static_cast<size_t>(n_heads * head_dim * n)), vector(static_cast<size_t>(head_dim));
    for (int head = 0; head < n_heads; ++head)
        for (int64_t token = 0; token < n; ++token) {
            policies::read_entry(view, head, first + token, head_dim, vector.data());
            for (int c = 0; c < head_dim; ++c)
                numbers[static_cast<size_t>((head * head_dim + c) * n + token)] = vector[static_cast<size_t>(c)];
        }
    return numbers;
}

}  // namespace kvscope::engine
