#include "trace/shared_scores.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/threads/team.h"
#include "trace/hdf5/hdf5.h"
#include "trace/hdf5/input_file.h"
#include "trace/part_folder.h"
#include "trace/records/schema.h"
#include "trace/records/trace_errors.h"

namespace kvscope::trace {

namespace {

/// Hashes the bits, because NaN is not equal to NaN. Digests depend on the piece size, so they are never stored.
template <class T>
SharedScores::Digest digest_of(std::span<const T> scores) {
    constexpr std::size_t piece_bytes = std::size_t{1} << 20;
    constexpr XXH64_hash_t seed = sizeof(T);  // ensures that digests of f32 and f64 differ
    const auto bytes = std::as_bytes(scores);
    std::vector<XXH128_hash_t> pieces(bytes.size() / piece_bytes + 1);
    kernels::over_parts(kernels::threads(), static_cast<std::int64_t>(pieces.size()), 1,
                        [&](std::int64_t begin, std::int64_t end, int /*member*/) {
                            for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
                                const auto piece = bytes.subspan(i * piece_bytes,
                                                                 std::min(piece_bytes, bytes.size() - i * piece_bytes));
                                pieces[i] = XXH3_128bits_withSeed(piece.data(), piece.size(), seed);
                            }
                        });
    const auto whole = XXH3_128bits_withSeed(pieces.data(), pieces.size() * sizeof(pieces[0]), seed);
    return {whole.low64, whole.high64};
}

std::optional<SharedScores::Digest> digest_of(const RunRecord& record) {
    if (!record.scores_f64.empty()) return digest_of<double>(record.scores_f64);
    if (!record.scores.empty()) return digest_of<float>(record.scores);
    return std::nullopt;
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

SharedScores::Digest SharedScores::read_digest(int prompt, int run) const {
    const h5::Handle file = open_input_file(file_of_run(folder_, prompt, run));
    const std::string path = fmt::format("/prompts/{}/runs/{}/{}", prompt, run, schema::run::scores.path);
    if (!h5::exists(file.get(), path)) return {};  // a part without scores has a zero digest
    const h5::Handle data_set = h5::open_data_set(file.get(), path);
    if (h5::data_set_info(data_set.get()).element == schema::Type::f64)
        return digest_of<double>(h5::read_data_set<double>(data_set.get()));
    return digest_of<float>(h5::read_data_set<float>(data_set.get()));
}

bool SharedScores::holds(int prompt, int run, Holder& holder, const Digest& wanted) const {
    try {
        if (!holder.digest) holder.digest = read_digest(prompt, run);
    } catch (const TraceError&) {
        return false;  // join_parts() reads all parts and sets the damaged one aside
    }
    return *holder.digest == wanted;
}

SharedScores::Found SharedScores::find(int prompt, int run, const RunRecord& record) {
    auto& holders = holders_[prompt];
    const std::optional<Digest> digest = digest_of(record);
    const Digest wanted = digest.value_or(Digest());
    const auto own = holders.find(run);
    if (own != holders.end() && !own->second.borrowers.empty()) {
        if (!holds(prompt, run, own->second, wanted))
            throw std::invalid_argument(
                fmt::format("run {} of prompt {} cannot be replaced by a run with other scores, because run {} shares "
                            "its scores",
                            run, prompt, *own->second.borrowers.begin()));
        return {std::nullopt, digest};
    }
    if (!digest) return {};
    for (auto& [other, holder] : holders) {
        if (other != run && holds(prompt, other, holder, wanted)) return {other, digest};
    }
    return {std::nullopt, digest};
}

void SharedScores::written(int prompt, int run, const Found& found) {
    if (const auto before = sources_[prompt].find(run); before != sources_[prompt].end()) {
        holders_[prompt][before->second].borrowers.erase(run);
        sources_[prompt].erase(before);
    }
    if (found.source) {
        holders_[prompt].erase(run);
        add_part(prompt, run, found.source);
    } else if (found.digest) {
        holders_[prompt][run].digest = found.digest;
    }
}

}  // namespace kvscope::trace
