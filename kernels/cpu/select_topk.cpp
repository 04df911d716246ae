#include "kernels/select_topk.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cpu/score_key.h"
#include "kernels/threads/parallel.h"

namespace kvscope::kernels {

namespace {

template <class Score>
int64_t first_nan(const Score* values, int64_t n) {
    bool any = false;
    for (int64_t i = 0; i < n; ++i) any |= values[i] != values[i];  // NOLINT(misc-redundant-expression): true for NaN
    if (!any) return -1;
    int64_t i = 0;
    while (values[i] == values[i]) ++i;  // NOLINT(misc-redundant-expression): false for NaN
    return i;
}

/// The k-th largest key, and the number of keys equal to it among the k largest.
template <class Key>
struct Cut {
    Key key;
    int64_t equal_taken;
};

constexpr int digit_bits = 11;
using Histogram = std::array<int64_t, 1 << digit_bits>;  ///< number of keys with each digit

/// Returns the largest digit such that k keys have this or a higher digit. Subtracts keys with a higher digit from k.
int cut_digit(const Histogram& histogram, int64_t& k) {
    int digit = (1 << digit_bits) - 1;
    while (histogram[digit] < k) k -= histogram[digit--];
    return digit;
}

Histogram sum_of(const std::vector<Histogram>& histograms) {
    Histogram sum = histograms[0];
    for (size_t row = 1; row < histograms.size(); ++row)
        std::transform(sum.begin(), sum.end(), histograms[row].begin(), sum.begin(), std::plus<>());
    return sum;
}

/// Radix selection from the most significant digit, 0 < k <= n_rows * n. Each pass keeps the bucket of the k-th key.
template <class Score>
Cut<KeyOf<Score>> find_cut(const Score* scores, int64_t n_rows, int64_t n, int64_t row_stride, int64_t k) {
    using Key = KeyOf<Score>;
    int shift = 8 * sizeof(Key) - digit_bits;
    std::vector<Histogram> histograms(static_cast<size_t>(n_rows));
    parallel_for(n_rows, n_rows * n, [&](int64_t row) {
        Histogram& histogram = histograms[static_cast<size_t>(row)];
        const Score* of_row = scores + row * row_stride;
        for (int64_t i = 0; i < n; ++i) ++histogram[sort_key_of_score(of_row[i]) >> shift];
    });
    std::vector<int64_t> n_keys;  // keys of each row in the bucket
    const auto cut = [&] {
        const int digit = n_rows == 1 ? cut_digit(histograms[0], k) : cut_digit(sum_of(histograms), k);
        n_keys.clear();
        for (const Histogram& of_row : histograms) n_keys.push_back(of_row[static_cast<size_t>(digit)]);
        return static_cast<Key>(digit);
    };
    Key digit = cut();
    std::vector<std::vector<Key>> keys(static_cast<size_t>(n_rows));
    parallel_for(n_rows, n_rows * n, [&, shift, digit](int64_t row) {
        auto& of_row = keys[static_cast<size_t>(row)];
        of_row.reserve(static_cast<size_t>(n_keys[static_cast<size_t>(row)]));
        for (int64_t i = 0; i < n; ++i) {
            const Key key = sort_key_of_score(scores[row * row_stride + i]);
            if (key >> shift == digit) of_row.push_back(key);
        }
    });
    while (shift > 0) {
        const int bits = std::min(shift, digit_bits);
        shift -= bits;
        const Key mask = (Key{1} << bits) - 1;
        const int64_t n_left = std::accumulate(n_keys.begin(), n_keys.end(), int64_t{0});
        parallel_for(n_rows, n_left, [&, shift, mask](int64_t row) {
            Histogram& histogram = histograms[static_cast<size_t>(row)];
            histogram.fill(0);
            for (const Key key : keys[static_cast<size_t>(row)]) ++histogram[(key >> shift) & mask];
        });
        digit = cut();
        parallel_for(n_rows, n_left, [&, shift, mask, digit](int64_t row) {
            auto& of_row = keys[static_cast<size_t>(row)];
            if (static_cast<int64_t>(of_row.size()) != n_keys[static_cast<size_t>(row)])
                std::erase_if(of_row, [&](Key key) { return ((key >> shift) & mask) != digit; });
        });
    }
    const auto& any = *std::find_if(keys.begin(), keys.end(), [](const auto& of_row) { return !of_row.empty(); });
    return {any.front(), k};
}

template <class Score>
void require_numbers(const Score* scores, int64_t n_rows, int64_t n, int64_t row_stride) {
    for (int64_t row = 0; row < n_rows; ++row) {
        const int64_t position = first_nan(scores + row * row_stride, n);
        if (position >= 0) throw NanScore(row, position);
    }
}

void require_count(int64_t k, int64_t n) {
    if (k < 0 || k > n) {
        throw std::invalid_argument("top-k: cannot take " + std::to_string(k) + " of " + std::to_string(n) + " scores");
    }
}

template <class Score>
void select(const Score* scores, int64_t n, int64_t k, uint32_t* indices) {
    require_count(k, n);
    require_numbers(scores, 1, n, n);
    if (k == 0) return;
    if (k == n) {
        for (int64_t i = 0; i < n; ++i) indices[i] = static_cast<uint32_t>(i);
        return;
    }
    auto [cut, equal_left] = find_cut(scores, 1, n, n, k);
    int64_t taken = 0;
    for (int64_t i = 0; taken < k; ++i) {
        const auto key = sort_key_of_score(scores[i]);
        if (key > cut || (key == cut && equal_left-- > 0)) indices[taken++] = static_cast<uint32_t>(i);
    }
}

template <class Score>
void count_by_row(const Score* scores, int64_t n_rows, int64_t n, int64_t row_stride, int64_t k, int64_t* counts) {
    require_count(k, n_rows * n);
    require_numbers(scores, n_rows, n, row_stride);
    for (int64_t row = 0; row < n_rows; ++row) counts[row] = 0;
    if (k == 0) return;
    auto [cut, equal_left] = find_cut(scores, n_rows, n, row_stride, k);
    std::vector<int64_t> equal(static_cast<size_t>(n_rows), 0);
    parallel_for(n_rows, n_rows * n, [&, key_of_cut = cut](int64_t row) {
        int64_t above = 0, at_cut = 0;
        for (int64_t i = 0; i < n; ++i) {
            const auto key = sort_key_of_score(scores[row * row_stride + i]);
            above += key > key_of_cut;
            at_cut += key == key_of_cut;
        }
        counts[row] = above;
        equal[static_cast<size_t>(row)] = at_cut;
    });
    for (int64_t row = 0; row < n_rows; ++row) {
        const int64_t equal_here = std::min(equal[static_cast<size_t>(row)], equal_left);
        equal_left -= equal_here;
        counts[row] += equal_here;
    }
}

}  // namespace

NanScore::NanScore(int64_t row_found, int64_t position_found)
    : std::runtime_error("the score at position " + std::to_string(position_found) + " of row " +
                         std::to_string(row_found) + " is not a number"),
      row(row_found),
      position(position_found) {}

int64_t find_nan(const float* values, int64_t n) { return first_nan(values, n); }
int64_t find_nan(const double* values, int64_t n) { return first_nan(values, n); }

void select_topk(const float* scores, int64_t n, int64_t k, uint32_t* indices) { select(scores, n, k, indices); }
void select_topk(const double* scores, int64_t n, int64_t k, uint32_t* indices) { select(scores, n, k, indices); }

void count_topk_by_row(const float* scores, int64_t n_rows, int64_t n, int64_t row_stride, int64_t k, int64_t* counts) {
    count_by_row(scores, n_rows, n, row_stride, k, counts);
}
void count_topk_by_row(const double* scores, int64_t n_rows, int64_t n, int64_t row_stride, int64_t k,
                       int64_t* counts) {
    count_by_row(scores, n_rows, n, row_stride, k, counts);
}

}  // namespace kvscope::kernels
