#pragma once

#include <utility>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/prefill/prefill.h"

namespace kvscope::engine::testing {

/// Returns the full cache of a prompt and the logits after it.
[[nodiscard]] inline std::pair<RunCache, std::vector<float>> whole_cache(const Transformer& model,
                                                                         std::span<const int32_t> ids) {
    SilentProgress progress;
    PrefillRequest request;
    request.ids = ids;
    const auto result = prefill(model, request, nullptr, progress);
    RunCache cache(model, policies::Granularity::kv_head, policies::Positions::prompt, false);
    for (size_t layer = 0; layer < result.cache.size(); ++layer)
        cache.adopt(static_cast<int>(layer), result.cache[layer], static_cast<int64_t>(ids.size()));
    return {std::move(cache), result.last_logits};
}

}  // namespace kvscope::engine::testing
