#include "engine/prefill/observed_layer.h"

#include <utility>

namespace kvscope::engine {

ObservedLayer::ObservedLayer(const policies::LayerObservations& observed, DenseLayer shared)
    : dense(std::move(shared)),
      window_queries(observed.window_queries.begin(), observed.window_queries.end()),
      attention_sums(observed.attention_sums.begin(), observed.attention_sums.end()) {
    observations.layer = observed.layer;
    observations.shape = observed.shape;
    observations.n_tokens = observed.n_tokens;
    observations.sliding_window = observed.sliding_window;
    observations.keys = dense.keys_view();
    observations.values = dense.values_view();
    observations.window_queries = window_queries;
    observations.n_window = observed.n_window;
    observations.attention_sums = attention_sums;
}

}  // namespace kvscope::engine
