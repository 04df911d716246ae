#include "analysis/measures/head_clustering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

namespace kvscope::analysis {
namespace {

using Cluster = std::vector<size_t>;  ///< heads in the order of the tree's leaves

class Matrix {
 public:
    Matrix(std::span<const float> values, size_t n) : values_(values), n_(n) {}

    double operator()(size_t a, size_t b) const { return values_[std::min(a, b) * n_ + std::max(a, b)]; }

    double mean(const Cluster& a, const Cluster& b) const {
        double sum = 0;
        for (const size_t i : a) {
            for (const size_t j : b) sum += (*this)(i, j);
        }
        return sum / static_cast<double>(a.size() * b.size());
    }

 private:
    std::span<const float> values_;
    size_t n_;
};

Cluster joined(Cluster a, Cluster b, const Matrix& distance) {
    const double last_first = distance(a.back(), b.front());
    const double last_last = distance(a.back(), b.back());
    const double first_first = distance(a.front(), b.front());
    const double first_last = distance(a.front(), b.back());
    const double nearest = std::min({last_first, last_last, first_first, first_last});
    if (nearest < last_first) {
        if (nearest == last_last) {
            std::reverse(b.begin(), b.end());
        } else if (nearest == first_first) {
            std::reverse(a.begin(), a.end());
        } else {
            std::swap(a, b);
        }
    }
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/// Removes the head with the most NaN values until no NaN remains between two heads.
Cluster known_heads(const Matrix& distance, size_t n) {
    Cluster known(n);
    for (size_t i = 0; i < n; ++i) known[i] = i;
    while (true) {
        size_t worst = 0, most = 0;
        for (const size_t head : known) {
            const auto unknown = static_cast<size_t>(std::count_if(known.begin(), known.end(), [&](size_t other) {
                return other != head && std::isnan(distance(head, other));
            }));
            if (unknown > 0 && unknown >= most) {
                most = unknown;
                worst = head;
            }
        }
        if (most == 0) return known;
        known.erase(std::find(known.begin(), known.end(), worst));
    }
}

}  // namespace

std::vector<size_t> order_heads_by_similarity(std::span<const float> divergence, size_t n) {
    if (divergence.size() != n * n) {
        throw std::invalid_argument(
            fmt::format("order of heads: {} values are not {} heads squared", divergence.size(), n));
    }
    const Matrix distance(divergence, n);
    const Cluster known = known_heads(distance, n);
    std::vector<Cluster> clusters;
    for (const size_t head : known) clusters.push_back({head});
    while (clusters.size() > 1) {
        size_t first = 0, second = 1;
        double nearest = std::numeric_limits<double>::infinity();
        for (size_t a = 0; a < clusters.size(); ++a) {
            for (size_t b = a + 1; b < clusters.size(); ++b) {
                const double d = distance.mean(clusters[a], clusters[b]);
                if (d < nearest) {
                    nearest = d;
                    first = a;
                    second = b;
                }
            }
        }
        clusters[first] = joined(std::move(clusters[first]), std::move(clusters[second]), distance);
        clusters.erase(clusters.begin() + static_cast<std::ptrdiff_t>(second));
    }
    Cluster order = clusters.empty() ? Cluster() : clusters.front();
    for (size_t head = 0; head < n; ++head) {
        if (std::find(known.begin(), known.end(), head) == known.end()) order.push_back(head);
    }
    return order;
}

}  // namespace kvscope::analysis
