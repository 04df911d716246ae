// Finds runs of an unfinished trace with identical scores, e.g. at several budgets, so that one part stores the scores.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "trace/records/records.h"

namespace kvscope::trace {

class SharedScores {
 public:
    explicit SharedScores(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}

    /// Registers an existing part. `source` is the run whose part stores the scores, or nullopt if the run's part does.
    void add_part(int prompt, int run, std::optional<int> source);
    /// Unregisters and returns the runs of a prompt whose scores are in a missing part. These runs must be made again.
    [[nodiscard]] std::set<int> forget_orphans(int prompt, const std::set<int>& runs);

    /// 128-bit hash of all score bytes.
    using Digest = std::pair<std::uint64_t, std::uint64_t>;

    struct Found {
        std::optional<int> source;     ///< run of the prompt whose part holds identical scores
        std::optional<Digest> digest;  ///< digest of the record's scores, or nullopt if it has none
    };

    /// Finds a registered run with the same scores. `source` is nullopt if there is no such run, or if other runs share
    /// the scores of `run`. Requires an h5::Guard. Throws std::invalid_argument if the record changes such shared
    /// scores.
    [[nodiscard]] Found find(int prompt, int run, const RunRecord& record);
    void written(int prompt, int run, const Found& found);

 private:
    struct Holder {
        std::optional<Digest> digest;  ///< nullopt until the scores are read
        std::set<int> borrowers;
    };

    [[nodiscard]] Digest read_digest(int prompt, int run) const;
    [[nodiscard]] bool holds(int prompt, int run, Holder& holder, const Digest& wanted) const;

    std::filesystem::path folder_;
    std::map<int, std::map<int, Holder>> holders_;  ///< runs with scores, by prompt and run
    std::map<int, std::map<int, int>>
        sources_;  ///< run whose part holds the scores, by prompt and by run that shares them
};

}  // namespace kvscope::trace
