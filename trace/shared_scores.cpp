#include "trace/shared_scores.h"

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "trace/errors.h"
#include "trace/hdf5.h"
#include "trace/input_file.h"
#include "trace/part_folder.h"
#include "trace/schema.h"

namespace kvscope::trace {

namespace {

// Bit by bit, since a position that is no candidate has a NaN.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
std::uint64_t hash_of(const std::vector<T>& values) {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

/// Of a run's scores, which are of one of the two types.
std::uint64_t hash_of(const std::vector<float>& scores, const std::vector<double>& scores_f64) {
    return scores_f64.empty() ? hash_of(scores) : ~hash_of(scores_f64);
}

}  // namespace

void SharedScores::add_part(int prompt, int run, std::optional<int> source) {
    if (source) {
        sources_[prompt][run] = *source;
        holders_[prompt][*source].borrowers.insert(run);
    } else {
        holders_[prompt][run];
    }
}

std::set<int> SharedScores::forget_orphans(int prompt, const std::set<int>& runs) {
    std::set<int> orphans;
    for (const auto& [run, source] : sources_[prompt]) {
        if (!runs.contains(source)) orphans.insert(run);
    }
    for (const int run : orphans) sources_[prompt].erase(run);
    std::erase_if(holders_[prompt], [&](const auto& holder) { return !runs.contains(holder.first); });
    return orphans;
}

SharedScores::Scores SharedScores::read(int prompt, int run) const {
    Scores scores;
    const h5::Handle file = open_input_file(folder_ / run_part(prompt, run));
    const std::string path = fmt::format("/prompts/{}/runs/{}/{}", prompt, run, schema::run::scores.path);
    if (!h5::exists(file.get(), path)) return scores;
    const h5::Handle data_set = h5::open_data_set(file.get(), path);
    if (h5::info(data_set.get()).element == schema::Type::f64)
        scores.f64 = h5::read<double>(data_set.get());
    else
        scores.f32 = h5::read<float>(data_set.get());
    return scores;
}

bool SharedScores::holds(int prompt, int run, Holder& holder, const RunRecord& record) const {
    if (holder.hash && *holder.hash != hash_of(record.scores, record.scores_f64)) return false;
    Scores held;
    try {
        held = read(prompt, run);
    } catch (const TraceError&) {
        return false;  // joining the parts reads all of them, and sets this one aside
    }
    holder.hash = hash_of(held.f32, held.f64);
    return same_bits(held.f32, record.scores) && same_bits(held.f64, record.scores_f64);
}

std::optional<int> SharedScores::find(int prompt, int run, const RunRecord& record) {
    auto& holders = holders_[prompt];
    const auto own = holders.find(run);
    if (own != holders.end() && !own->second.borrowers.empty()) {
        if (!holds(prompt, run, own->second, record))
            throw std::invalid_argument(
                fmt::format("run {} of prompt {} cannot be replaced by one with other scores: run {} takes its own "
                            "from it",
                            run, prompt, *own->second.borrowers.begin()));
        return std::nullopt;
    }
    if (record.scores.empty() && record.scores_f64.empty()) return std::nullopt;
    for (auto& [other, holder] : holders) {
        if (other != run && holds(prompt, other, holder, record)) return other;
    }
    return std::nullopt;
}

void SharedScores::written(int prompt, int run, const RunRecord& record, std::optional<int> source) {
    if (const auto before = sources_[prompt].find(run); before != sources_[prompt].end()) {
        holders_[prompt][before->second].borrowers.erase(run);
        sources_[prompt].erase(before);
    }
    if (source) {
        holders_[prompt].erase(run);
        add_part(prompt, run, source);
    } else if (!record.scores.empty() || !record.scores_f64.empty()) {
        holders_[prompt][run].hash = hash_of(record.scores, record.scores_f64);
    }
}

}  // namespace kvscope::trace
