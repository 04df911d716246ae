// Records into HDF5 groups.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>
#include <vector>

#include "trace/extents.h"
#include "trace/records.h"

namespace kvscope::trace {

/// Attributes of `/`.
struct RootAttributes {
    std::string generator;
    std::string created_utc;
    std::string recipe_json;
    bool complete = false;
};

void store_root(hid_t file, const RootAttributes& root);

// Each throws std::invalid_argument where a vector does not have the shape that schema.h gives it or
// breaks a rule of the format, before anything is written.

void store_model(hid_t file, const std::string& group, const ModelRecord& record);
void store_prompt(hid_t file, const std::string& group, const PromptRecord& record, const ModelAttributes& model);
/// `shares`: the run takes its kept entries and scores from another prompt's; its own are not stored. `scores_of`: it
/// takes its scores from that run of the prompt.
void store_run(hid_t file, const std::string& group, const RunRecord& record, const ModelAttributes& model,
               const PromptAttributes& prompt, bool shares, std::optional<int> scores_of = {});
/// The checks alone. `name` is the run's in messages.
void require_run(const std::string& name, const RunRecord& record, const ModelAttributes& model,
                 const PromptAttributes& prompt, bool shares = false);
void store_results(hid_t file, const std::string& path, const std::vector<ResultRow>& rows);

}  // namespace kvscope::trace
