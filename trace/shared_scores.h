// Finds runs of an unfinished trace with identical scores, e.g. at several budgets, so that one part stores the scores.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "trace/records.h"

namespace kvscope::trace {

class SharedScores {
 public:
    explicit SharedScores(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}

    /// Registers an existing part. `source` is the run whose part has the scores, or nullopt for this part.
    void add_part(int prompt, int run, std::optional<int> source);
    /// Forgets and returns the runs of a prompt whose scores are in a missing part. They have to be made again.
    std::set<int> forget_orphans(int prompt, const std::set<int>& runs);

    /// 128-bit hash of all score bytes.
    using Digest = std::pair<std::uint64_t, std::uint64_t>;

    struct Found {
        std::optional<int> source;     ///< run of the prompt whose part holds identical scores
        std::optional<Digest> digest;  ///< digest of the record's scores, or nullopt if it has none
    };

    /// Finds an earlier run with the same scores. `source` is empty if there is no such run, or if other runs refer to
    /// this run. Requires an h5::Guard. Throws std::invalid_argument if other runs refer to different scores of this
    /// run.
    Found find(int prompt, int run, const RunRecord& record);
    void written(int prompt, int run, const Found& found);

 private:
    struct Holder {
        std::optional<Digest> digest;  ///< nullopt until the scores are read
        std::set<int> borrowers;
    };

    Digest read_digest(int prompt, int run) const;
    bool holds(int prompt, int run, Holder& holder, const Digest& wanted) const;

    std::filesystem::path folder_;
    std::map<int, std::map<int, Holder>> holders_;  ///< runs with scores, by prompt and run
    std::map<int, std::map<int, int>>
        sources_;  ///< run whose part holds the scores, by prompt and by run that shares them
};

}  // namespace kvscope::trace
