#include "engine/score_pool.h"

#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

namespace kvscope::engine {

template <class T>
ScorePool::Shared<T> ScorePool::keep(std::vector<T> values, Known<T>& known) {
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    const size_t hash = std::hash<std::string_view>()(bytes);
    auto [first, last] = known.equal_range(hash);
    while (first != last) {
        const Shared<T> held = first->second.lock();
        if (!held) {
            first = known.erase(first);
            continue;
        }
        // Bit by bit: a position that is no candidate has a NaN, which equals nothing.
        if (held->size() == values.size() && std::memcmp(held->data(), bytes.data(), bytes.size()) == 0) return held;
        ++first;
    }
    auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    known.emplace(hash, kept);
    return kept;
}

template ScorePool::Shared<float> ScorePool::keep(std::vector<float>, Known<float>&);
template ScorePool::Shared<double> ScorePool::keep(std::vector<double>, Known<double>&);

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
