#include "policies/registry/name_matching.h"

#include <algorithm>

namespace kvscope::policies {

namespace {

char folded(char c) {
    if (c == '_') return '-';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string folded(std::string_view name) {
    std::string result;
    for (char c : name) result += folded(c);
    return result;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return folded(x) == folded(y); });
}

int name_distance(std::string_view a_name, std::string_view b_name) {
    const std::string a = folded(a_name), b = folded(b_name);
    std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) d[i][0] = static_cast<int>(i);
    for (size_t j = 0; j <= b.size(); ++j) d[0][j] = static_cast<int>(j);
    for (size_t i = 1; i <= a.size(); ++i) {
        for (size_t j = 1; j <= b.size(); ++j) {
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[a.size()][b.size()];
}

std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& candidates) {
    constexpr size_t most_shown = 3;
    constexpr size_t longest_name = 64;  // longer input is not a misspelled name
    if (name.empty() || name.size() > longest_name) return {};
    const std::string wanted = folded(name);
    std::vector<std::pair<int, std::string>> near;
    for (const std::string& candidate : candidates) {
        const int distance = name_distance(name, candidate);
        const std::string other = folded(candidate);
        const bool contained = std::min(wanted.size(), other.size()) >= 3 &&
                               (other.find(wanted) != std::string::npos || wanted.find(other) != std::string::npos);
        const int allowed = std::max(1, static_cast<int>(std::max(wanted.size(), other.size())) / 3);
        if (contained || distance <= allowed) near.emplace_back(distance, candidate);
    }
    std::stable_sort(near.begin(), near.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    if (near.size() > most_shown) near.resize(most_shown);
    std::vector<std::string> result;
    for (auto& [distance, candidate] : near) result.push_back(std::move(candidate));
    return result;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
    const std::vector<std::string> near = nearest_names(name, candidates);
    if (near.empty()) return "";
    std::string text = " Did you mean " + near[0];
    for (size_t i = 1; i < near.size(); ++i) text += (i + 1 == near.size() ? " or " : ", ") + near[i];
    return text + "?";
}

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

}  // namespace kvscope::policies
