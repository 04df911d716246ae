#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "kernels/sorted_scores.h"

namespace kvscope::policies {

/// Immutable scores of a layer, stored row by row. The class has the interface of a vector. Copies share the memory.
template <class T>
class Scores {
 public:
    using value_type = T;
    using Values = std::shared_ptr<const std::vector<T>>;

    Scores() = default;
    Scores(std::vector<T> values) {
        if (!values.empty()) held_ = std::make_shared<Held>(std::move(values));
    }
    Scores(std::initializer_list<T> values) : Scores(std::vector<T>(values)) {}

    [[nodiscard]] size_t size() const { return vector().size(); }
    [[nodiscard]] bool empty() const { return vector().empty(); }
    [[nodiscard]] const T* data() const { return vector().data(); }
    [[nodiscard]] auto begin() const { return vector().begin(); }
    [[nodiscard]] auto end() const { return vector().end(); }
    [[nodiscard]] const T& operator[](size_t i) const { return vector()[i]; }
    [[nodiscard]] const std::vector<T>& vector() const {
        static const std::vector<T> none;
        return held_ ? *held_->values : none;
    }
    operator std::span<const T>() const { return vector(); }

    void assign(size_t n, T value) { *this = std::vector<T>(n, value); }
    template <class Iterator>
    void assign(Iterator first, Iterator last) {
        *this = std::vector<T>(first, last);
    }

    [[nodiscard]] bool operator==(const Scores& other) const { return vector() == other.vector(); }

    [[nodiscard]] Values values() const { return held_ ? held_->values : nullptr; }

    /// Returns the ranking of each row of n scores, or nullptr on the first request, because one selection is faster.
    [[nodiscard]] const kernels::SortedScores<T>* ranking(int64_t n) const {
        if (!are_rows_of(n)) return nullptr;
        const std::lock_guard lock(held_->mutex);
        if (held_->was_asked && !held_->was_announced) rank(n);
        held_->was_asked = true;
        return known(n);
    }
    /// Announces a later call of ranking(). The second announcement computes the ranking while threads are idle.
    void announce_ranking(int64_t n) const {
        if (!are_rows_of(n)) return;
        const std::lock_guard lock(held_->mutex);
        if (held_->was_announced) rank(n);
        held_->was_announced = true;
    }
    [[nodiscard]] const kernels::SortedScores<T>* known_ranking(int64_t n) const {
        if (!held_) return nullptr;
        const std::lock_guard lock(held_->mutex);
        return known(n);
    }

 private:
    struct Held {
        explicit Held(std::vector<T> all) : values(std::make_shared<const std::vector<T>>(std::move(all))) {}
        Values values;  // separate from the ranking, so that an owner of the values does not keep the ranking alive
        std::mutex mutex;
        bool was_asked = false;
        bool was_announced = false;
        std::unique_ptr<const kernels::SortedScores<T>> ranking;
    };

    [[nodiscard]] bool are_rows_of(int64_t n) const { return held_ && n >= 1 && size() % static_cast<size_t>(n) == 0; }

    void rank(int64_t n) const {
        if (held_->ranking) return;
        held_->ranking = std::make_unique<kernels::SortedScores<T>>(data(), static_cast<int64_t>(size()) / n, n);
    }

    [[nodiscard]] const kernels::SortedScores<T>* known(int64_t n) const {
        return held_->ranking && held_->ranking->n() == n ? held_->ranking.get() : nullptr;
    }

    std::shared_ptr<Held> held_;
};

}  // namespace kvscope::policies
