#include "trace/shared_scores.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "trace/errors.h"
#include "trace/hdf5.h"
#include "trace/input_file.h"
#include "trace/part_folder.h"
#include "trace/schema.h"

namespace kvscope::trace {

// A position that is no candidate has a NaN, which no comparison of numbers finds the same.
SharedScores::Digest SharedScores::digest_of(const std::vector<float>& scores, const std::vector<double>& scores_f64) {
    const bool is_f64 = !scores_f64.empty();
    const XXH128_hash_t hash = is_f64 ? XXH3_128bits_withSeed(scores_f64.data(), scores_f64.size() * sizeof(double), 1)
                                      : XXH3_128bits_withSeed(scores.data(), scores.size() * sizeof(float), 0);
    return {hash.low64, hash.high64};
}

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

SharedScores::Digest SharedScores::read_digest(int prompt, int run) const {
    const h5::Handle file = open_input_file(folder_ / run_part(prompt, run));
    const std::string path = fmt::format("/prompts/{}/runs/{}/{}", prompt, run, schema::run::scores.path);
    if (!h5::exists(file.get(), path)) return digest_of({}, {});
    const h5::Handle data_set = h5::open_data_set(file.get(), path);
    if (h5::info(data_set.get()).element == schema::Type::f64) return digest_of({}, h5::read<double>(data_set.get()));
    return digest_of(h5::read<float>(data_set.get()), {});
}

bool SharedScores::holds(int prompt, int run, Holder& holder, const Digest& wanted) const {
    try {
        if (!holder.digest) holder.digest = read_digest(prompt, run);
    } catch (const TraceError&) {
        return false;  // joining the parts reads all of them, and sets this one aside
    }
    return *holder.digest == wanted;
}

std::optional<int> SharedScores::find(int prompt, int run, const RunRecord& record) {
    auto& holders = holders_[prompt];
    const Digest wanted = digest_of(record.scores, record.scores_f64);
    const auto own = holders.find(run);
    if (own != holders.end() && !own->second.borrowers.empty()) {
        if (!holds(prompt, run, own->second, wanted))
            throw std::invalid_argument(
                fmt::format("run {} of prompt {} cannot be replaced by one with other scores: run {} takes its own "
                            "from it",
                            run, prompt, *own->second.borrowers.begin()));
        return std::nullopt;
    }
    if (record.scores.empty() && record.scores_f64.empty()) return std::nullopt;
    for (auto& [other, holder] : holders) {
        if (other != run && holds(prompt, other, holder, wanted)) return other;
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
        holders_[prompt][run].digest = digest_of(record.scores, record.scores_f64);
    }
}

}  // namespace kvscope::trace
