// The list of problems that find_problems() fills, and checks of groups and values.
#pragma once

#include <hdf5.h>

#include <set>
#include <span>
#include <string>
#include <vector>

#include "trace/checks/check_trace.h"
#include "trace/group_locations.h"
#include "trace/records/extents.h"
#include "trace/records/schema.h"

namespace kvscope::trace {

class Problems {
 public:
    void error(std::string path, std::string expected, std::string found) {
        list_.push_back({Problem::Severity::error, std::move(path), std::move(expected), std::move(found)});
    }
    void warning(std::string path, std::string expected, std::string found) {
        list_.push_back({Problem::Severity::warning, std::move(path), std::move(expected), std::move(found)});
    }
    [[nodiscard]] std::vector<Problem> take() { return std::move(list_); }

 private:
    std::vector<Problem> list_;
};

/// Data sets that exist with the right type and shape, so that their values can be checked.
using Sound = std::set<const schema::DataSet*>;

void check_attributes(hid_t object, const std::string& path, std::span<const schema::Attribute> attributes,
                      Problems& problems);

/// Checks each data set of the list and returns the sound ones. Data sets in `excused` may be missing.
[[nodiscard]] Sound check_data_sets(hid_t file, const std::string& group,
                                    std::span<const schema::DataSet* const> data_sets, const Extents& extents,
                                    const Sound& excused, Problems& problems);

// These functions check values of sound data sets and report at most one problem per data set and rule.

void check_model_values(hid_t file, const std::string& group, const Sound& sound, const ModelAttributes& model,
                        Problems& problems);
void check_prompt_values(hid_t file, const std::string& group, const Sound& sound, const ModelAttributes& model,
                         const PromptAttributes& prompt, Problems& problems);
void check_run_values(hid_t file, const std::string& group, const Sound& sound, const ModelAttributes& model,
                      const PromptAttributes& prompt, const RunAttributes& run, Problems& problems);

}  // namespace kvscope::trace
