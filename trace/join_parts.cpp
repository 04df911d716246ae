#include "trace/join_parts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trace/group_locations.h"
#include "trace/hdf5/hdf5.h"
#include "trace/hdf5/output_file.h"
#include "trace/hdf5/threaded_chunk_io.h"
#include "trace/load_records.h"
#include "trace/result_table.h"

namespace kvscope::trace {

namespace {

void require_no_gaps(const Source& parts) {
    const bool has_only_results = parts.prompts.empty() && !parts.results.empty();  // imported from another program
    if (!parts.model && !has_only_results) throw std::invalid_argument("cannot finish a trace without its model");
    int prompt = 0;
    for (const PromptPlace& place : parts.prompts) {
        if (place.number != prompt++) {
            throw std::invalid_argument(fmt::format(
                "cannot finish the trace: prompt {} is missing, but prompt {} exists", prompt - 1, place.number));
        }
        int run = 0;
        for (const GroupPlace& run_place : place.runs) {
            if (run_place.number != run++) {
                throw std::invalid_argument(
                    fmt::format("cannot finish the trace: run {} of prompt {} is missing", run - 1, place.number));
            }
        }
    }
}

/// Calls `action` with a part. Sets a damaged part aside, but never the extended trace.
template <class Action>
void with_part(Source& parts, const GroupPlace& place, const OutputFile& output, Action action) {
    output.require_healthy();
    try {
        try {
            action(parts.open(place.file).get());
        } catch (const h5::Failure& failure) {
            output.require_healthy();
            h5::throw_unreadable(place.file.string(), failure);
        }
    } catch (const ReadFailed&) {
        throw;
    } catch (const WriteFailed&) {
        throw;
    } catch (const TraceError& damage) {
        if (place.file == parts.base)
            throw DamagedTrace(
                fmt::format("{}: the trace to be extended is damaged; choose another output, or "
                            "allow kvscope to replace this trace",
                            damage.what()));
        throw DamagedTrace(set_damaged_part_aside(place.file, damage.what()) + "; run the same command again");
    }
}

/// Reads a few megabytes at a time, because a data set of kept entries can have millions of rows of one number.
void read_data_set(hid_t data_set, const std::string& action) {
    constexpr hsize_t most_bytes = hsize_t{4} << 20, most_row_bytes = hsize_t{1} << 40;
    const h5::Handle type(H5Dget_type(data_set), H5Tclose), space(H5Dget_space(data_set), H5Sclose);
    std::vector<hsize_t> shape(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space.get()))));
    if (H5Sget_simple_extent_npoints(space.get()) <= 0) return;
    const bool is_scalar = shape.empty();
    if (is_scalar)
        shape.assign(1, 1);
    else
        H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr);
    const hsize_t n_rows = std::exchange(shape[0], hsize_t{1});
    hsize_t row_bytes = H5Tget_size(type.get());
    for (const hsize_t extent : shape) {
        if (extent > most_row_bytes / row_bytes)
            throw DamagedTrace(fmt::format("cannot {}: one of its rows is larger than any trace", action));
        row_bytes *= extent;
    }
    const hsize_t at_once = std::clamp<hsize_t>(most_bytes / row_bytes, 1, n_rows);
    std::vector<char> rows(static_cast<std::size_t>(at_once * row_bytes));
    std::vector<hsize_t> start(shape.size(), 0);
    for (; start[0] < n_rows; start[0] += at_once) {
        shape[0] = std::min(at_once, n_rows - start[0]);
        const h5::Handle memory(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose);
        if (!is_scalar)
            h5::checked(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, shape.data(), nullptr),
                        action);
        h5::checked(H5Dread(data_set, type.get(), memory.get(), space.get(), H5P_DEFAULT, rows.data()), action);
    }
}

/// Reads all data once. Packed chunks are copied unchanged, so damage must be found before the parts are removed.
void require_readable(hid_t file, const std::string& group, std::set<std::uint64_t>& seen) {
    for (const std::string& name : h5::members(file, group)) {
        const std::string path = fmt::format("{}/{}", group, name);
        if (h5::is_group(file, path)) {
            require_readable(file, path, seen);
            continue;
        }
        if (!seen.insert(h5::address(file, path)).second) continue;  // data set shared by several runs
        require_readable_data_set(file, path);
    }
}

void copy_group(Source& parts, const GroupPlace& place, OutputFile& output) {
    const std::string action = fmt::format("copy {}", place.group);
    const h5::Handle links = h5::link_properties();
    with_part(parts, place, output, [&](hid_t part) {
        std::set<std::uint64_t> seen;
        require_readable(part, place.group, seen);
        h5::checked(H5Ocopy(part, place.group.c_str(), output.id(), place.group.c_str(), H5P_DEFAULT, links.get()),
                    action);
    });
}

void link_data_set(hid_t file, const std::string& from, const std::string& to, const schema::DataSet& data_set) {
    const std::string source = fmt::format("{}/{}", from, data_set.path);
    const std::string target = fmt::format("{}/{}", to, data_set.path);
    if (!h5::exists(file, source) || h5::exists(file, target)) return;
    const std::string action = fmt::format("link {}", target);
    const h5::Handle links = h5::link_properties();
    h5::checked(H5Lcreate_hard(file, source.c_str(), file, target.c_str(), links.get(), H5P_DEFAULT), action);
}

template <std::size_t count>
void link_shared(hid_t file, const std::string& from, const std::string& to,
                 const schema::DataSet* const (&data_sets)[count]) {
    for (const schema::DataSet* data_set : data_sets) link_data_set(file, from, to, *data_set);
}

void share_scores(const PromptPlace& place, hid_t file) {
    for (const GroupPlace& run : place.runs) {
        const h5::Handle group = h5::open_group(file, run.group);
        const auto source = load_score_source_run_number(group.get(), run.file.string());
        if (!source) continue;
        const std::string holder = fmt::format("{}/runs/{}", place.group, *source);
        if (!h5::exists(file, fmt::format("{}/{}", holder, schema::run::scores.path)))
            throw DamagedTrace(
                set_damaged_part_aside(run.file, fmt::format("expected the run's scores in {}, found none", holder)) +
                "; run the same command again");
        link_data_set(file, holder, run.group, schema::run::scores);
        h5::checked(H5Adelete(group.get(), schema::run::scores_of_attribute.data()),
                    "remove the reference to shared scores");
    }
}

void share_context(const PromptPlace& place, const PromptAttributes& prompt,
                   const std::optional<std::filesystem::path>& base, hid_t file) {
    const std::string from = fmt::format("/prompts/{}", *prompt.context_of);
    if (place.file != base) link_shared(file, from, place.group, schema::prompt::shared_data_sets);
    for (const GroupPlace& run : place.runs) {
        if (run.file == base) continue;
        // A run with its own kept entries does not use another prompt's entries.
        if (h5::exists(file, run.group + "/" + std::string(schema::run::kept_offsets.path))) continue;
        link_shared(file, fmt::format("{}/runs/{}", from, run.number), run.group, schema::run::shared_data_sets);
    }
}

}  // namespace

namespace {

void join(Source& parts, OutputFile& joined, h5::Guard& guard) {
    const auto copy = [&](const GroupPlace& place) {
        copy_group(parts, place, joined);
        guard.let_others();
    };
    const auto create_group = [&](const std::string& group) {
        if (!h5::is_group(joined.id(), group)) h5::create_group(joined.id(), group);
    };
    if (parts.model) copy(*parts.model);
    const std::string prompts{schema::root::prompts_group};
    // Copies all prompts of the base in one call, so that their shared data sets stay shared.
    if (parts.base && h5::is_group(parts.open(*parts.base).get(), prompts)) copy({*parts.base, prompts});
    create_group(prompts);
    for (const PromptPlace& place : parts.prompts) {
        if (place.file != parts.base) copy(place);
        create_group(place.group + "/" + std::string(schema::root::runs_group));
        for (const GroupPlace& run : place.runs)
            if (run.file != parts.base) copy(run);
        share_scores(place, joined.id());
        const PromptAttributes prompt =
            load_prompt(h5::open_group(joined.id(), place.group).get(), place.file.string());
        if (prompt.context_of) share_context(place, prompt, parts.base, joined.id());
    }
    for (const auto& [task, batches] : parts.results) {
        std::vector<ResultRow> rows;
        for (const GroupPlace& batch : batches) {
            with_part(parts, batch, joined, [&](hid_t file) {
                auto part = load_results(h5::open_data_set(file, batch.group).get(), batch.file.string());
                rows.insert(rows.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
            });
            guard.let_others();
        }
        set_data_hash(rows);
        store_results(joined.id(), "/results/" + task, rows);
    }
    RootAttributes root = parts.root;
    root.complete = true;
    store_root(joined.id(), root);
}

}  // namespace

void require_readable_data_set(hid_t file, const std::string& path) {
    const h5::Handle data_set = h5::open_data_set(file, path);
    const std::string action = fmt::format("read {}", path);
    if (!h5::check_chunks(data_set.get(), action)) read_data_set(data_set.get(), action);
}

std::optional<FileIdentity> read_file_identity(const std::filesystem::path& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) return std::nullopt;
    constexpr std::int64_t ns_per_second = 1'000'000'000;
    return FileIdentity{found.st_dev, found.st_ino, found.st_size,
                        found.st_mtim.tv_sec * ns_per_second + found.st_mtim.tv_nsec};
}

void join_parts(const std::filesystem::path& folder, const std::filesystem::path& output,
                const std::optional<FileIdentity>& replaced) {
    std::unique_ptr<OutputFile> joined;
    {
        h5::Guard guard;
        Source parts(folder);
        require_no_gaps(parts);
        joined = std::make_unique<OutputFile>(folder / "joined.h5.tmp");
        join(parts, *joined, guard);
        joined->close();
    }
    const auto found = read_file_identity(output);
    if (found && found != replaced)
        throw OutputExists(fmt::format(
            "another program replaced {0} while this trace was written; kvscope leaves {0} unchanged. All finished "
            "work is in {1}: move {0} elsewhere and run the same command again",
            output.string(), folder.string()));
    joined->commit(output);
}

}  // namespace kvscope::trace
