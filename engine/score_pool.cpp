#include "engine/score_pool.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

namespace kvscope::engine {

namespace {

/// Of a part of the bytes: what has it in common is compared whole.
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
ScorePool::Shared<T> ScorePool::keep(const policies::Scores<T>& scores, Known<T>& known) {
    const Shared<T> values = scores.values();
    const std::string_view bytes(reinterpret_cast<const char*>(scores.data()), scores.size() * sizeof(T));
    const size_t hash = hash_of(bytes);
    auto [first, last] = known.equal_range(hash);
    while (first != last) {
        const Shared<T> held = first->second.lock();
        if (!held) {
            first = known.erase(first);
            continue;
        }
        // Bit by bit: a position that is no candidate has a NaN, which equals nothing.
        if (held == values ||
            (held->size() == values->size() && std::memcmp(held->data(), bytes.data(), bytes.size()) == 0))
            return held;
        ++first;
    }
    known.emplace(hash, values);
    return values;
}

template ScorePool::Shared<float> ScorePool::keep(const policies::Scores<float>&, Known<float>&);
template ScorePool::Shared<double> ScorePool::keep(const policies::Scores<double>&, Known<double>&);

size_t ScorePool::bytes() const {
    size_t total = 0;
    const auto add = [&](const auto& known) {
        for (const auto& [hash, values] : known)
            if (const auto held = values.lock()) total += held->size() * sizeof(held->front());
    };
    add(f32_);
    add(f64_);
    return total;
}

}  // namespace kvscope::engine
