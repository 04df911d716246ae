#include "kernels/sorted_scores.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/cpu/score_key.h"
#include "kernels/threads/parallel.h"

namespace kvscope::kernels {

namespace {

constexpr int digit_bits = 11;
constexpr int n_digits = 1 << digit_bits;

template <class Score>
constexpr int n_passes = (8 * static_cast<int>(sizeof(Score)) + digit_bits - 1) / digit_bits;

template <class Key>
struct Place {
    Key key;
    uint32_t index;
};

/// Returns a key that ascends as scores descend. NaN has the highest key.
template <class Score>
KeyOf<Score> descending_key(Score score) {
    const bool is_number = score == score;  // NOLINT(misc-redundant-expression): false for NaN
    return is_number ? static_cast<KeyOf<Score>>(~sort_key_of_score(score)) : ~KeyOf<Score>{0};
}

template <class Key>
void sort(std::vector<Place<Key>>& places) {
    std::array<std::array<uint32_t, n_digits>, n_passes<Key>> counts{};
    const auto digit = [](Key key, int pass) { return static_cast<size_t>(key >> (pass * digit_bits)) % n_digits; };
    for (const auto& place : places) {
        for (int pass = 0; pass < n_passes<Key>; ++pass) ++counts[static_cast<size_t>(pass)][digit(place.key, pass)];
    }
    std::vector<Place<Key>> moved(places.size());
    for (int pass = 0; pass < n_passes<Key>; ++pass) {
        auto& count = counts[static_cast<size_t>(pass)];
        if (std::find(count.begin(), count.end(), places.size()) != count.end()) continue;  // all digits are equal
        uint32_t begin = 0;
        for (uint32_t& of_digit : count) begin += std::exchange(of_digit, begin);
        for (const auto& place : places) moved[count[digit(place.key, pass)]++] = place;
        places.swap(moved);
    }
}

void require_count(int64_t k, int64_t n) {
    if (k < 0 || k > n)
        throw std::invalid_argument("top-k: cannot take " + std::to_string(k) + " of " + std::to_string(n) + " scores");
}

}  // namespace

template <class Score>
SortedScores<Score>::SortedScores(const Score* scores, int64_t n_rows, int64_t n)
    : scores_(scores),
      n_rows_(n_rows),
      n_(n),
      order_(static_cast<size_t>(n_rows * n)),
      n_numbers_(static_cast<size_t>(n_rows)) {
    parallel_for(n_rows, 2 * n_passes<Score> * n_rows * n, [&](int64_t row) {
        const Score* of_row = scores + row * n;
        std::vector<Place<KeyOf<Score>>> places(static_cast<size_t>(n));
        int64_t n_numbers = 0;
        for (int64_t i = 0; i < n; ++i) {
            places[static_cast<size_t>(i)] = {descending_key(of_row[i]), static_cast<uint32_t>(i)};
            n_numbers += of_row[i] == of_row[i];  // NOLINT(misc-redundant-expression): false for NaN
        }
        sort(places);
        uint32_t* to = order_.data() + row * n;
        for (const auto& place : places) *to++ = place.index;
        n_numbers_[static_cast<size_t>(row)] = n_numbers;
    });
}

template <class Score>
int64_t SortedScores<Score>::find_nan(int64_t row, int64_t n_prefix) const {
    const int64_t n_numbers = n_numbers_[static_cast<size_t>(row)];
    if (n_numbers == n_) return -1;
    const int64_t first = order(row)[n_numbers];
    return first < n_prefix ? first : -1;
}

template <class Score>
void SortedScores<Score>::select(int64_t row, int64_t n_prefix, int64_t k, uint32_t* indices) const {
    require_count(k, n_prefix);
    if (const int64_t position = find_nan(row, n_prefix); position >= 0) throw NanScore(0, position);
    // Marks the indices in a bit set, then lists the marked indices in ascending order.
    std::vector<uint64_t> taken(static_cast<size_t>((n_prefix + 63) / 64));
    const uint32_t* next = order(row);
    for (int64_t left = k; left > 0; ++next) {
        if (*next >= n_prefix) continue;
        taken[*next / 64] |= uint64_t{1} << (*next % 64);
        --left;
    }
    for (size_t word = 0; word < taken.size(); ++word) {
        for (uint64_t bits = taken[word]; bits != 0; bits &= bits - 1)
            *indices++ = static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_zero(bits));
    }
}

template <class Score>
bool SortedScores<Score>::ends_at(int64_t n_prefix) const {
    for (int64_t row = 0; row < n_rows_; ++row) {
        if (n_numbers_[static_cast<size_t>(row)] != n_prefix || find_nan(row, n_prefix) >= 0) return false;
    }
    return true;
}

template <class Score>
void SortedScores<Score>::count(int64_t n_prefix, int64_t k, int64_t* counts) const {
    require_count(k, n_rows_ * n_prefix);
    for (int64_t row = 0; row < n_rows_; ++row) {
        if (const int64_t position = find_nan(row, n_prefix); position >= 0) throw NanScore(row, position);
        if (n_numbers_[static_cast<size_t>(row)] != n_prefix)
            throw std::invalid_argument("top-k of all rows: expected only NaN after the first " +
                                        std::to_string(n_prefix));
    }
    using Key = KeyOf<Score>;
    const auto n_below = [&](int64_t row, Key key) {  // number of better scores, whose key is lower
        const uint32_t* of_row = order(row);
        const Score* scores = scores_ + row * n_;
        return std::partition_point(of_row, of_row + n_prefix,
                                    [&](uint32_t i) { return descending_key(scores[i]) < key; }) -
               of_row;
    };
    // Finds the highest key below which all rows together have at most k scores.
    Key key = 0;
    for (int bit = 8 * sizeof(Key) - 1; bit >= 0; --bit) {
        const Key higher = key | Key{1} << bit;
        int64_t total = 0;
        for (int64_t row = 0; row < n_rows_; ++row) total += n_below(row, higher);
        if (total <= k) key = higher;
    }
    int64_t left = k;
    for (int64_t row = 0; row < n_rows_; ++row) left -= counts[row] = n_below(row, key);
    for (int64_t row = 0; row < n_rows_ && left > 0; ++row) {
        const int64_t equal = std::min(left, n_below(row, key + 1) - counts[row]);
        counts[row] += equal;
        left -= equal;
    }
}

template class SortedScores<float>;
template class SortedScores<double>;

}  // namespace kvscope::kernels
