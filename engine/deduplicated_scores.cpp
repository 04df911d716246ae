#include "engine/deduplicated_scores.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "kernels/threads/parallel.h"

namespace kvscope::engine {

namespace {

size_t hash_of(std::string_view bytes) {
    constexpr size_t piece = 64, n_pieces = 64;
    const size_t stride = std::max(bytes.size() / n_pieces, piece);
    size_t hash = bytes.size();
    for (size_t at = 0; at < bytes.size(); at += stride)
        hash = hash * 31 + std::hash<std::string_view>()(bytes.substr(at, piece));
    return hash;
}

}  // namespace

template <class T>
DeduplicatedScores::Shared<T> DeduplicatedScores::keep(const policies::Scores<T>& scores, Known<T>& known) {
    Shared<T> values = scores.values();
    const std::string_view bytes(reinterpret_cast<const char*>(scores.data()), scores.size() * sizeof(T));
    const size_t hash = hash_of(bytes);
    auto [first, last] = known.equal_range(hash);
    while (first != last) {
        Shared<T> held = first->second.lock();
        if (!held) {
            first = known.erase(first);
            continue;
        }
        // Compares bits, because NaN, which marks positions without a score, does not equal itself.
        if (held == values ||
            (held->size() == values->size() && std::memcmp(held->data(), bytes.data(), bytes.size()) == 0))
            return held;
        ++first;
    }
    known.emplace(hash, values);
    return values;
}

template DeduplicatedScores::Shared<float> DeduplicatedScores::keep(const policies::Scores<float>&, Known<float>&);
template DeduplicatedScores::Shared<double> DeduplicatedScores::keep(const policies::Scores<double>&, Known<double>&);

template <class T>
std::vector<T> ScoreBuffer::join(std::span<const DeduplicatedScores::Shared<T>> layers, std::vector<T>& room) {
    if (layers.empty()) return {};
    std::vector<size_t> begins = {0};
    for (const auto& layer : layers) begins.push_back(begins.back() + layer->size());
    std::vector<T> joined = std::exchange(room, {});
    if (joined.capacity() < begins.back()) {
        joined.clear();
        joined.reserve(begins.back());
        for (const auto& layer : layers) joined.insert(joined.end(), layer->begin(), layer->end());
        return joined;
    }
    joined.resize(begins.back());
    kernels::parallel_for(static_cast<int64_t>(layers.size()), static_cast<int64_t>(joined.size()), [&](int64_t i) {
        const auto& layer = *layers[static_cast<size_t>(i)];
        std::copy(layer.begin(), layer.end(), joined.begin() + static_cast<ptrdiff_t>(begins[static_cast<size_t>(i)]));
    });
    return joined;
}

template std::vector<float> ScoreBuffer::join(std::span<const DeduplicatedScores::Shared<float>>, std::vector<float>&);
template std::vector<double> ScoreBuffer::join(std::span<const DeduplicatedScores::Shared<double>>,
                                               std::vector<double>&);

void ScoreBuffer::take_back(trace::RunRecord& record) {
    if (!record.scores.empty()) f32_ = std::move(record.scores);
    if (!record.scores_f64.empty()) f64_ = std::move(record.scores_f64);
}

}  // namespace kvscope::engine
