#include "engine/prefill/evidence_ranges.h"

namespace kvscope::engine {

nlohmann::ordered_json ranges_of_evidence(std::span<const uint32_t> evidence) {
    auto ranges = nlohmann::ordered_json::array();
    for (const uint32_t token : evidence) {
        if (!ranges.empty() && ranges.back()[1] == token)
            ranges.back()[1] = token + 1;
        else
            ranges.push_back(nlohmann::ordered_json::array({token, token + 1}));
    }
    return ranges;
}

std::optional<std::vector<uint32_t>> evidence_of_ranges(const nlohmann::json& ranges, int64_t n_context) {
    if (!ranges.is_array() || n_context < 0) return std::nullopt;
    std::vector<uint32_t> evidence;
    uint64_t after = 0;
    for (const auto& range : ranges) {
        if (!range.is_array() || range.size() != 2 || !range[0].is_number_unsigned() || !range[1].is_number_unsigned())
            return std::nullopt;
        const auto first = range[0].get<uint64_t>(), end = range[1].get<uint64_t>();
        if (first < after || end <= first || end > static_cast<uint64_t>(n_context)) return std::nullopt;
        for (uint64_t token = first; token < end; ++token) evidence.push_back(static_cast<uint32_t>(token));
        after = end;
    }
    return evidence;
}

}  // namespace kvscope::engine
