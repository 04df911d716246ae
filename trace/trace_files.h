// What a trace's files hold: attributes at once, data sets when asked for.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace/extents.h"
#include "trace/hdf5.h"
#include "trace/interruption.h"
#include "trace/reader.h"
#include "trace/source.h"

namespace kvscope::trace {

/// "t.h5: /prompts/0", as messages have it.
std::string place_name(const GroupPlace& place);

/// Turns a failure of HDF5 into DamagedTrace or ReadFailed, which say where it happened.
template <class Action>
auto guarded(const GroupPlace& place, Action action) -> decltype(action()) {
    throw_if_interrupted();
    try {
        return action();
    } catch (const h5::Failure& failure) {
        h5::throw_unreadable(place_name(place), failure);
    }
}

/// Shared by a reader and those that with_run() made of it. Any number of threads may use one. An index of a prompt
/// that is not there is std::out_of_range; one of a run is the caller's to check.
class TraceFiles {
 public:
    struct Prompt {
        PromptAttributes attributes;
        std::vector<RunAttributes> runs;
    };

    /// Throws as Reader's constructor.
    static std::shared_ptr<const TraceFiles> open(const std::filesystem::path& path);

    [[nodiscard]] const Source& source() const { return source_; }
    [[nodiscard]] bool has_model() const { return model_.has_value(); }
    /// Throws DamagedTrace where it is not there yet.
    const ModelAttributes& model() const;
    [[nodiscard]] int n_prompts() const { return static_cast<int>(prompts_.size()); }
    const Prompt& prompt(int prompt) const;

    /// Its own group, whether or not a data set of it lies in another.
    [[nodiscard]] const GroupPlace& group(Place place) const;
    [[nodiscard]] bool has(Place place, const schema::DataSet& data_set) const;

    /// What `action` makes of the open data set, after its rank and the lengths that the attributes fix were checked.
    /// Throws DamagedTrace where it is not there or has another shape.
    template <class Action>
    auto with_data_set(Place place, const schema::DataSet& data_set, Action action) const {
        const h5::Guard guard;
        const GroupPlace here = find_data_set(place, data_set);
        return guarded(here, [&] {
            const h5::Handle open = h5::open_data_set(source_.open(here.file).get(), here.group);
            require_shape(place, data_set, h5::info(open.get()).shape, place_name(here));
            return action(open.get());
        });
    }

    /// Read once, then shared.
    [[nodiscard]] std::shared_ptr<const Kept> kept(int prompt, int run) const;
    /// Throws std::out_of_range where there are none of the task.
    [[nodiscard]] std::vector<ResultRow> results(std::string_view task) const;

 private:
    explicit TraceFiles(const std::filesystem::path& path);

    template <class Load>
    auto load(const GroupPlace& place, Load load_attributes);
    const GroupPlace* find(Place place, const schema::DataSet& data_set) const;
    const GroupPlace* find_among_runs(Place place, const schema::DataSet& data_set) const;
    bool lies_in(const GroupPlace& place, const schema::DataSet& data_set) const;
    GroupPlace find_data_set(Place place, const schema::DataSet& data_set) const;
    Extents extents(Place place) const;
    void require_shape(Place place, const schema::DataSet& data_set, const std::vector<std::size_t>& found,
                       const std::string& where) const;
    std::shared_ptr<const Kept> read_kept(int prompt, int run) const;
    void read_storage(Place place, Kept& kept) const;
    std::shared_ptr<const Kept> cached_kept(int prompt, int run) const;

    mutable Source source_;
    std::optional<ModelAttributes> model_;
    std::vector<Prompt> prompts_;
    // Apart from HDF5's, so that what is known is there while another thread reads.
    mutable std::mutex kept_mutex_;
    mutable std::map<std::pair<int, int>, std::shared_ptr<const Kept>> kept_;
};

}  // namespace kvscope::trace
