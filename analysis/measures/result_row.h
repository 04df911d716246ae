#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns the row of /results that describes a run. Columns of benchmark tasks, such as `score`, are empty or NaN.
/// Numbers that are not recorded are NaN; so are all measures and times of a failed run.
/// @param recall mean recall of the run; NaN if unknown @param evidence see evidence_shares(); may be empty
[[nodiscard]] trace::ResultRow result_row(const trace::ModelAttributes& model, const trace::PromptAttributes& prompt,
                                          const trace::RunRecord& run, double recall,
                                          std::span<const uint32_t> evidence = {});

using OnDamage = std::function<void(const trace::TraceError&)>;
/// For callers that show unknown measures as unknown.
inline void ignore_damage(const trace::TraceError&) {}

/// Returns the rows of these runs: stored rows (trace::Reader::stored_row), or rows that are computed from the recorded
/// data. Computed rows have no `sample_hash` and no `data_hash`. Frees the kept entries that it reads.
/// @param on_damage called for damaged data sets, whose measures are then NaN. If empty, the error is thrown
/// @param evidence see evidence_shares(); empty if unknown
[[nodiscard]] std::vector<trace::ResultRow> result_rows(const trace::Reader& reader, int prompt,
                                                        std::span<const int> runs, const OnDamage& on_damage = nullptr,
                                                        std::span<const uint32_t> evidence = {});

/// Returns the rows of all runs of a prompt, like result_rows().
[[nodiscard]] std::vector<trace::ResultRow> result_rows_of_prompt(const trace::Reader& reader, int prompt,
                                                                  const OnDamage& on_damage = nullptr,
                                                                  std::span<const uint32_t> evidence = {});

/// Returns the size of a run's cache as a share of the full cache, or NaN if it is unknown. Uses predicted sizes if the
/// full run has no `bytes`. @param rows one per run of a prompt
[[nodiscard]] double share_of_full_bytes(std::span<const trace::ResultRow> rows, const trace::ResultRow& run);

}  // namespace kvscope::analysis
