// The contents of a trace's files. Attributes are read on opening, data sets on request.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "common/stopped.h"
#include "trace/group_locations.h"
#include "trace/hdf5/hdf5.h"
#include "trace/reader.h"
#include "trace/records/extents.h"

namespace kvscope::trace {

[[nodiscard]] std::string place_name(const GroupPlace& place);

/// The open files of a reader and of all readers derived from it. Any number of threads may use them.
class OpenTraceFiles {
 public:
    struct Prompt {
        PromptAttributes attributes;
        std::vector<RunAttributes> runs;
    };

    [[nodiscard]] static std::shared_ptr<const OpenTraceFiles> open(const std::filesystem::path& path,
                                                                    const std::stop_token& stop);

    [[nodiscard]] const Source& source() const { return source_; }
    [[nodiscard]] bool has_model() const { return model_.has_value(); }
    const ModelAttributes& model() const;
    [[nodiscard]] int n_prompts() const { return static_cast<int>(prompts_.size()); }
    const Prompt& prompt(int prompt) const;

    /// Returns the group of a place, even if some of its data sets are stored in another group.
    [[nodiscard]] const GroupPlace& group(Place place) const;

    // These functions throw Stopped after a stop request.

    [[nodiscard]] bool has(Place place, const schema::DataSet& data_set, const std::stop_token& stop) const;

    /// Returns action(open data set). Throws DamagedTrace if the data set is missing or has another shape.
    template <class Action>
    [[nodiscard]] auto with_data_set(Place place, const schema::DataSet& data_set, const std::stop_token& stop,
                                     Action action) const {
        const h5::Guard guard;
        throw_if_stopped(stop);
        const GroupPlace here = find_data_set(place, data_set);
        return h5::with_place_in_errors(place_name(here), [&] {
            const h5::Handle open = h5::open_data_set(source_.open(here.file).get(), here.group);
            require_shape(place, data_set, h5::data_set_info(open.get()).shape, place_name(here));
            return action(open.get());
        });
    }

    [[nodiscard]] std::shared_ptr<const Kept> kept(int prompt, int run, const std::stop_token& stop) const;
    [[nodiscard]] std::shared_ptr<const Kept> read_kept(int prompt, int run, const std::stop_token& stop) const;
    [[nodiscard]] std::shared_ptr<const Kept> cached_kept(int prompt, int run) const;
    /// Returns rows as Reader::results(), valid as long as this object. Throws std::out_of_range if the task has no
    /// results.
    [[nodiscard]] std::span<const ResultRow> results(std::string_view task, const std::stop_token& stop) const;
    /// Throws std::out_of_range if the task has no results.
    [[nodiscard]] std::size_t n_results(std::string_view task, const std::stop_token& stop) const;
    /// Returns the run's row of /results/prompts, or nullptr as Reader::stored_row().
    [[nodiscard]] const ResultRow* stored_row(int prompt, int run, const std::stop_token& stop) const;

 private:
    OpenTraceFiles(const std::filesystem::path& path, const std::stop_token& stop);

    template <class Load>
    [[nodiscard]] auto load(const GroupPlace& place, const std::stop_token& stop, Load load_attributes);
    [[nodiscard]] const GroupPlace* find(Place place, const schema::DataSet& data_set) const;
    [[nodiscard]] const GroupPlace* find_among_runs(Place place, const schema::DataSet& data_set) const;
    [[nodiscard]] bool lies_in(const GroupPlace& place, const schema::DataSet& data_set) const;
    [[nodiscard]] GroupPlace find_data_set(Place place, const schema::DataSet& data_set) const;
    [[nodiscard]] Extents extents(Place place) const;
    void require_shape(Place place, const schema::DataSet& data_set, const std::vector<std::size_t>& found,
                       const std::string& where) const;
    void read_storage(Place place, Kept& kept, const std::stop_token& stop) const;
    [[nodiscard]] const std::vector<GroupPlace>& result_tables(std::string_view task) const;
    using RowsOfRuns = std::map<std::pair<int, int>, ResultRow>;
    [[nodiscard]] RowsOfRuns read_rows_of_runs(const std::stop_token& stop) const;
    [[nodiscard]] std::vector<ResultRow> read_results(std::string_view task, const std::stop_token& stop) const;

    mutable Source source_;
    std::optional<ModelAttributes> model_;
    std::vector<Prompt> prompts_;
    /// Separate from the HDF5 lock, so that cached entries can be returned while another thread reads.
    mutable std::mutex kept_mutex_;
    mutable std::map<std::pair<int, int>, std::shared_ptr<const Kept>> kept_;
    /// Protects the next two members. A thread locks it before HDF5, so that other threads wait for the rows instead
    /// of reading them again.
    mutable std::recursive_mutex results_mutex_;
    mutable std::map<std::string, std::vector<ResultRow>, std::less<>> results_;  ///< by task
    mutable std::optional<RowsOfRuns> rows_;
};

}  // namespace kvscope::trace
