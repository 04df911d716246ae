#include "trace/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "common/bounded_json.h"
#include "common/json.h"
#include "trace/group_locations.h"
#include "trace/hdf5/hdf5.h"
#include "trace/hdf5/output_file.h"
#include "trace/join_parts.h"
#include "trace/load_records.h"
#include "trace/part_folder.h"
#include "trace/recipe.h"
#include "trace/records/storable_text.h"
#include "trace/result_table.h"
#include "trace/shared_scores.h"
#include "trace/store_records.h"

namespace kvscope::trace {

namespace fs = std::filesystem;

namespace {

nlohmann::json parse_recipe(std::string_view text) {
    auto json = bounded_json::parse_or_discard(text);
    if (json.is_discarded()) throw std::invalid_argument("a trace's recipe must be JSON");
    return json;
}

bool same_recipe(const nlohmann::json& recipe, const std::string& other) {
    const auto parsed = bounded_json::parse_or_discard(other);
    return !parsed.is_discarded() && are_equal_recipes(parsed, recipe);
}

enum class Found { nothing, same, part, other };  ///< part: the found recipe is a part of the wanted recipe

using IsPart = std::function<bool(const std::string& recipe_json)>;

Found found_recipe(const nlohmann::json& recipe, const std::string& other, const IsPart& is_part) {
    if (same_recipe(recipe, other)) return Found::same;
    return is_part && is_part(other) ? Found::part : Found::other;
}

bool is_damage(const TraceError& failure) {
    return dynamic_cast<const DamagedTrace*>(&failure) != nullptr ||
           dynamic_cast<const TruncatedTrace*>(&failure) != nullptr;
}

/// Classifies the file at the output path. With force, an unreadable file counts as `other`, which may be replaced.
/// Throws for a folder or a device, which even force never replaces.
Found look_at_file(const fs::path& path, const nlohmann::json& recipe, const WriterOptions& options) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) return Found::nothing;
        throw WriteFailed(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
    }
    if (S_ISLNK(status.st_mode) && ::stat(path.c_str(), &status) != 0) return Found::other;
    if (!S_ISREG(status.st_mode)) {
        throw WriteFailed(fmt::format("cannot write {}: expected a file name, found a {}", path.string(),
                                      S_ISDIR(status.st_mode) ? "folder" : "device"));
    }
    try {
        const h5::Guard guard;
        const Source source(path);
        return source.root.complete ? found_recipe(recipe, source.root.recipe_json, options.is_part_of_it)
                                    : Found::other;
    } catch (const ReadFailed&) {
        if (!options.force) throw;
        return Found::other;
    } catch (const TraceError& failure) {
        if (!options.force && is_damage(failure))
            throw ReplaceableOutputExists(fmt::format(
                "{}; for a new trace, choose another output, or allow kvscope to replace it", failure.what()));
        return Found::other;
    }
}

/// Classifies the .part folder. A folder without finished files, even without trace.json, counts as nothing.
Found look_at_folder(const fs::path& folder, const nlohmann::json& recipe, const IsPart& is_part = {}) {
    std::error_code error;
    if (!fs::exists(folder, error)) return Found::nothing;
    if (!fs::is_directory(folder, error)) return Found::other;
    try {
        const auto record = read_folder_record(folder);
        if (record) return found_recipe(recipe, record->recipe_json, is_part);
        for (const auto& entry : fs::directory_iterator(folder)) {
            const std::string name = entry.path().filename().string();
            if (name != "lock" && name != part_file_name_of_base_trace() && !std::string_view(name).ends_with(".tmp"))
                return Found::other;
        }
        return Found::nothing;
    } catch (const ReadFailed&) {
        throw;
    } catch (const TraceError&) {
        return Found::other;
    } catch (const fs::filesystem_error& failure) {
        throw ReadFailed(fmt::format("cannot read {}: {}", folder.string(), failure.code().message()));
    }
}

ReadFailed with_file_kept(const ReadFailed& failure) {
    return ReadFailed(
        fmt::format("{}; kvscope keeps the file, because its contents may be sound. Run the same command again "
                    "when the file is readable, or move the file elsewhere to repeat its work",
                    failure.what()));
}

[[noreturn]] void refuse_existing(const fs::path& path, const std::string& why) {
    throw ReplaceableOutputExists(
        fmt::format("{} exists and is a different file{}; choose another output, or allow kvscope to replace it",
                    path.string(), why));
}

/// @param output the complete trace that can be extended, or empty if there is none
[[noreturn]] void refuse_existing_folder(const fs::path& folder, const nlohmann::json& recipe, const fs::path& output) {
    const std::string why = recipe_difference(recipe, folder);
    if (output.empty()) refuse_existing(folder, why);
    std::error_code error;
    throw OutputExists(fmt::format(
        "{} contains an unfinished {} of {}. The requested trace is different{}; repeat the earlier command to finish "
        "that trace, or remove the folder with the finished work. {} itself is complete and stays unchanged",
        folder.string(), fs::exists(folder / part_file_name_of_base_trace(), error) ? "extension" : "replacement",
        output.string(), why, output.string()));
}

void require_free(const fs::path& folder) {
    std::error_code error;
    if (!fs::exists(folder / "lock", error)) return;
    try {
        const FolderLock held(folder);
    } catch (const WriteFailed&) {
        // If the folder cannot be locked, other writers cannot be detected.
    }
}

/// `force` may replace a trace in any state, but no other kind of file: the user may have named that file by mistake.
void require_replaceable(const fs::path& path) {
    std::error_code error;
    const std::string extension = path.extension().string();
    if (extension == ".h5" || extension == ".hdf5" || fs::file_size(path, error) == 0 || error) return;
    const h5::Guard guard;
    if (H5Fis_hdf5(path.c_str()) > 0) return;
    throw OutputExists(
        fmt::format("{} is not a trace, and kvscope replaces only traces; choose another output", path.string()));
}

void require_folder_can_be_made(const fs::path& output) {
    const fs::path parent = output.parent_path().empty() ? fs::path(".") : output.parent_path();
    std::error_code error;
    if (!fs::is_directory(parent, error)) {
        throw WriteFailed(fmt::format("cannot write {}: there is no folder {}", output.string(), parent.string()));
    }
}

std::string problem_of_folder(const fs::path& folder, int error) {
    const fs::path parent = folder.parent_path().empty() ? fs::path(".") : folder.parent_path();
    const std::string reason = std::strerror(error);
    if (error == ENAMETOOLONG) return fmt::format("{}; choose a shorter output path", reason);
    if (error == ENOSPC || error == EDQUOT)
        return fmt::format("{}; free disk space and run the same command again", reason);
    return fmt::format("{} is not writable ({}); choose an output in another folder", parent.string(), reason);
}

/// Returns whether the folder is new.
bool make_folder(const fs::path& folder) {
    const int error = ::mkdir(folder.c_str(), 0777) == 0 ? 0 : errno;
    std::error_code ignored;
    if (error == EEXIST && !fs::is_directory(folder, ignored)) {
        throw OutputExists(
            fmt::format("{} exists, but kvscope needs a folder of that name for the unfinished trace; move the "
                        "file elsewhere or choose another output",
                        folder.string()));
    }
    if (error != 0 && error != EEXIST) {
        throw WriteFailed(fmt::format("cannot create {} for the unfinished trace: {}", folder.string(),
                                      problem_of_folder(folder, error)));
    }
    return error == 0;
}

void require_own_entries(const fs::path& folder) {
    if (const std::string name = foreign_entry(folder); !name.empty())
        throw OutputExists(
            fmt::format("{} contains {}, which kvscope did not make; move the folder "
                        "elsewhere or choose another output",
                        folder.string(), name));
}

/// Removes only files that a writer creates, even with force.
void empty_folder(const fs::path& folder) {
    require_own_entries(folder);
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().filename() != "lock") found.push_back(entry.path());
    for (const fs::path& path : found) fs::remove(path);
}

Found require_usable_output(const fs::path& path, const nlohmann::json& recipe, const WriterOptions& options) {
    require_folder_can_be_made(path);
    const Found file = look_at_file(path, recipe, options);
    if (file == Found::same && !options.force) return file;
    if (file == Found::other && !options.force) refuse_existing(path, recipe_difference(recipe, path));
    if (file == Found::other) require_replaceable(path);
    const fs::path folder = part_folder_of(path);
    if (!options.force && look_at_folder(folder, recipe, options.is_part_of_it) == Found::other) {
        require_free(folder);
        refuse_existing_folder(folder, recipe, file == Found::part ? path : fs::path());
    }
    return file;
}

}  // namespace

OutputState check_output_state(const fs::path& path, std::string_view recipe_json, const WriterOptions& options) {
    const nlohmann::json recipe = parse_recipe(recipe_json);
    const Found file = require_usable_output(path, recipe, options);
    if (file == Found::same && !options.force) return OutputState::complete;
    const fs::path folder = part_folder_of(path);
    std::error_code error;
    if (options.force && fs::exists(folder / part_file_name_of_base_trace(), error)) return OutputState::absent;
    if (make_folder(folder)) {
        ::rmdir(folder.c_str());
        return file == Found::part ? OutputState::resumable : OutputState::absent;
    }
    const Found found = look_at_folder(folder, recipe, options.is_part_of_it);
    if (found == Found::other) require_own_entries(folder);
    return found == Found::same || found == Found::part || file == Found::part ? OutputState::resumable
                                                                               : OutputState::absent;
}

struct Writer::Impl {
    fs::path path;  ///< the file that the output names, links resolved
    fs::path folder;
    std::optional<FileIdentity> replaced;  ///< file at `path` when the writer was opened
    FolderLock lock;
    RootAttributes root;
    Parts parts;
    Parts base;  ///< contents of the extended trace, without results
    std::map<std::pair<std::string, int>, std::vector<ResultRow>> results;
    std::vector<std::string> set_aside;
    bool resumed = false;
    bool finished = false;
    std::optional<ModelAttributes> model;
    std::map<int, PromptAttributes> prompts;
    SharedScores shared_scores;
    std::uint64_t stored_bytes = 0;

    Impl(const fs::path& output, std::string recipe_json, const WriterOptions& options)
        : path(resolve_output_links(output)),
          folder(part_folder_of(path)),
          replaced(read_file_identity(path)),
          shared_scores(folder) {
        const nlohmann::json recipe = parse_recipe(recipe_json);
        const Found file = require_usable_output(path, recipe, options);
        if (file == Found::same && !options.force) {
            drop_leftovers(recipe);
            throw AlreadyComplete(fmt::format("{} is already complete", path.string()));
        }
        make_folder(folder);
        lock = FolderLock(folder);
        if (read_file_identity(path) != replaced)
            throw OutputExists(
                fmt::format("another kvscope has just replaced {}; run the same command again", path.string()));
        open_folder(recipe, std::move(recipe_json), options, file == Found::part && !options.force);
        for (const auto& entry : fs::directory_iterator(folder)) stored_bytes += bytes_of(entry.path());
    }

    /// Returns 0 if there is no such file.
    static std::uint64_t bytes_of(const fs::path& part) {
        std::error_code error;
        const std::uint64_t bytes = fs::file_size(part, error);
        return error ? 0 : bytes;
    }

    void remove_part(const fs::path& part) {
        stored_bytes -= bytes_of(part);
        fs::remove(part);
    }

    /// Requires the lock. Checks the folder again, because other processes may have written there before.
    void open_folder(const nlohmann::json& recipe, std::string recipe_json, const WriterOptions& options,
                     bool extends_output) {
        try {
            Found found = look_at_folder(folder, recipe, options.is_part_of_it);
            if (found == Found::other && !options.force)
                refuse_existing_folder(folder, recipe, extends_output ? path : fs::path());
            // A folder whose parts were already joined into the file is a leftover.
            const auto record =
                found == Found::same || found == Found::part ? read_folder_record(folder) : std::nullopt;
            const bool is_leftover = extends_output && record && record->complete;
            if (found == Found::other || is_leftover ||
                (options.force && fs::exists(folder / part_file_name_of_base_trace()))) {
                empty_folder(folder);
                found = Found::nothing;
            }
            remove_temporary_files(folder);
            if (found == Found::same || found == Found::part) {
                root = *read_folder_record(folder);
                const bool was_joined = std::exchange(root.complete, false);  // the joined trace no longer exists
                if (found == Found::part) root.recipe_json = std::move(recipe_json);
                if (found == Found::part || was_joined) write_folder_record(folder, root);
                parts = list_parts(folder);
                resumed = !parts.empty();
                load_base();
                load_parts();
                return;
            }
            fs::remove(folder /
                       part_file_name_of_base_trace());  // left by a writer that was killed before it wrote trace.json
            if (extends_output) link_or_copy_base_trace(folder, path);
        } catch (const fs::filesystem_error& failure) {
            throw WriteFailed(fmt::format("cannot use {}: {}", folder.string(), failure.code().message()));
        }
        root.generator = storable_text(options.generator);
        root.created_utc = utc_text(options.created.value_or(std::time(nullptr)));
        if (extends_output) load_base();
        root.recipe_json = std::move(recipe_json);
        write_folder_record(folder, root);
    }

    /// A damaged base is an error, because the extended trace cannot be made again.
    void load_base() {
        if (!fs::exists(folder / part_file_name_of_base_trace())) return;
        const h5::Guard guard;
        const std::string where = path.string();
        h5::with_place_in_errors(where, [&] {
            Source source(folder / part_file_name_of_base_trace());
            const hid_t file = source.open(source.path).get();
            root.created_utc = source.root.created_utc;
            if (source.model) model = load_model(h5::open_group(file, "/model").get(), where);
            base.model = source.model.has_value();
            for (const PromptPlace& place : source.prompts) {
                prompts[place.number] = load_prompt(h5::open_group(file, place.group).get(), where);
                base.prompts.insert(place.number);
                std::set<std::uint64_t> held;
                for (const GroupPlace& run : place.runs) {
                    base.runs[place.number].insert(run.number);
                    const std::string scores = fmt::format("{}/{}", run.group, schema::run::scores.path);
                    if (h5::exists(file, scores) && held.insert(h5::address(file, scores)).second)
                        shared_scores.add_part(place.number, run.number, std::nullopt);
                }
            }
        });
    }

    static bool contains(const Parts& those, int prompt, int run) {
        const auto runs = those.runs.find(prompt);
        return runs != those.runs.end() && runs->second.contains(run);
    }
    bool has_run(int prompt, int run) const { return contains(parts, prompt, run) || contains(base, prompt, run); }

    /// Removes the .part folder that a crash after the final rename can leave.
    void drop_leftovers(const nlohmann::json& recipe) const {
        if (look_at_folder(folder, recipe) != Found::same) return;
        try {
            const FolderLock held(folder);
            remove_folder(folder);
        } catch (const std::runtime_error&) {
            // The folder is in use or protected. A leftover folder is harmless, because the trace is complete.
        }
    }

    /// Loads attributes and sets damaged parts aside. Throws for parts that cannot be read now but may be sound.
    void load_parts() {
        const h5::Guard guard;
        const auto readable = [&](const std::string& part, auto load) {
            const fs::path file = folder / part;
            try {
                h5::with_place_in_errors(file.string(), [&] { load(open_part(file).get(), file.string()); });
                return true;
            } catch (const ReadFailed& failure) {
                throw with_file_kept(failure);
            } catch (const TraceError& damage) {
                set_aside.push_back(set_damaged_part_aside(file, damage.what()));
                return false;
            }
        };
        parts.model = parts.model && readable(part_file_name_of_model(), [&](hid_t file, const std::string& where) {
                          model = load_model(h5::open_group(file, "/model").get(), where);
                      });
        std::erase_if(parts.prompts, [&](int i) {
            return !readable(part_file_name_of_prompt(i), [&](hid_t file, const std::string& where) {
                prompts[i] = load_prompt(h5::open_group(file, fmt::format("/prompts/{}", i)).get(), where);
            });
        });
        for (auto& [i, runs] : parts.runs) {
            std::erase_if(runs, [&, prompt = i](int j) {
                return !readable(part_file_name_of_run(prompt, j), [&](hid_t file, const std::string& where) {
                    const h5::Handle group = h5::open_group(file, fmt::format("/prompts/{}/runs/{}", prompt, j));
                    load_run(group.get(), where);
                    shared_scores.add_part(prompt, j, load_score_source_run_number(group.get(), where));
                });
            });
            std::set<int> there = runs;
            if (const auto held = base.runs.find(i); held != base.runs.end())
                there.insert(held->second.begin(), held->second.end());
            for (const int orphan : shared_scores.forget_orphans(i, there)) {
                set_aside.push_back(set_damaged_part_aside(folder / part_file_name_of_run(i, orphan),
                                                           "its scores are in another run's part, which is missing"));
                runs.erase(orphan);
            }
        }
        for (auto& [name, batches] : parts.results) {
            std::erase_if(batches, [&, &task = name](int batch) {
                return !readable(part_file_name_of_results(task, batch), [&](hid_t file, const std::string& where) {
                    results[{task, batch}] = load_results(h5::open_data_set(file, "/results/" + task).get(), where);
                });
            });
        }
    }

    template <class Store>
    void write_part(const std::string& name, Store store) {
        if (finished) throw std::logic_error("nothing can be written to a finished trace");
        fs::path temporary = folder / name;
        temporary += ".tmp";
        try {
            std::unique_ptr<OutputFile> file;
            {
                const h5::Guard guard;
                file = std::make_unique<OutputFile>(temporary);
                // trace.json holds the recipe, whose size grows with the number of prompts.
                store_root(file->id(), {root.generator, root.created_utc, "", false});
                store(file->id());
                file->close();
            }
            stored_bytes -= bytes_of(folder / name);
            file->commit(folder / name);
            stored_bytes += bytes_of(folder / name);
        } catch (const h5::Failure& failure) {
            throw WriteFailed(fmt::format("cannot write {}: {}", temporary.string(), failure.what()));
        }
    }

    /// Returns whether the run can share the entries of prompt `source`. Throws if the prompts have different entries.
    bool can_share(int source, int prompt, int run, const RunRecord& record) const {
        if (!has_run(source, run)) return false;
        const h5::Guard guard;
        const fs::path part = file_of_run(folder, source, run);
        return h5::with_place_in_errors(part.string(), [&] {
            const h5::Handle file = open_part(part);
            const auto in_file = [&](const schema::DataSet& data_set) {
                return fmt::format("/prompts/{}/runs/{}/{}", source, run, data_set.path);
            };
            if (!h5::exists(file.get(), in_file(schema::run::kept_offsets))) return false;
            const auto same = [&](const schema::DataSet& data_set, const auto& values) {
                using T = typename std::remove_cvref_t<decltype(values)>::value_type;
                return h5::read_data_set<T>(h5::open_data_set(file.get(), in_file(data_set)).get()) == values;
            };
            if (!record.kept_offsets.empty() && (!same(schema::run::kept_offsets, record.kept_offsets) ||
                                                 !same(schema::run::kept_indices, record.kept_indices))) {
                throw std::invalid_argument(
                    fmt::format("run {} of prompt {} shares the context of prompt {} but keeps other entries", run,
                                prompt, source));
            }
            return true;
        });
    }

    const ModelAttributes& require_model() const {
        if (!model) throw std::invalid_argument("a trace's model must be written before its prompts");
        return *model;
    }
    const PromptAttributes& require_prompt(int prompt) const {
        const auto found = prompts.find(prompt);
        if (found == prompts.end()) {
            throw std::invalid_argument(fmt::format(
                "prompt {} must be written before its runs and the prompts that share its context", prompt));
        }
        return found->second;
    }
};

Writer::Writer(const fs::path& path, std::string recipe_json, const WriterOptions& options)
    : impl_(std::make_unique<Impl>(path, std::move(recipe_json), options)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

bool Writer::resumed() const { return impl_->resumed; }
bool Writer::extends() const { return !impl_->base.empty(); }
const std::vector<std::string>& Writer::set_aside() const { return impl_->set_aside; }
bool Writer::has_model() const { return impl_->parts.model || impl_->base.model; }
bool Writer::has_prompt(int prompt) const {
    return impl_->parts.prompts.contains(prompt) || impl_->base.prompts.contains(prompt);
}
bool Writer::has_run(int prompt, int run) const { return impl_->has_run(prompt, run); }
bool Writer::has_results(std::string_view task, int batch) const {
    const auto batches = impl_->parts.results.find(std::string(task));
    return batches != impl_->parts.results.end() && batches->second.contains(batch);
}

const std::vector<ResultRow>& Writer::results(std::string_view task, int batch) const {
    return impl_->results.at({std::string(task), batch});
}

void Writer::write_model(const ModelRecord& record) {
    impl_->write_part(part_file_name_of_model(), [&](hid_t file) { store_model(file, "/model", record); });
    impl_->model = record;
    impl_->parts.model = true;
}

void Writer::write_prompt(int prompt, const PromptRecord& record) {
    if (prompt < 0) throw std::invalid_argument("prompts are numbered from 0");
    if (impl_->base.prompts.contains(prompt))
        throw std::logic_error(fmt::format("prompt {} is in the extended trace and cannot be replaced", prompt));
    const ModelAttributes& model = impl_->require_model();
    if (record.context_of) {
        const PromptAttributes& source = impl_->require_prompt(*record.context_of);
        if (*record.context_of >= prompt || record.query_aware || source.query_aware || source.context_of ||
            source.n_context != record.n_context || source.window != record.window) {
            throw std::invalid_argument(fmt::format(
                "prompt {} cannot share the context of prompt {}: expected an earlier prompt with its own context, "
                "the same n_context and window, and query_aware = 0 in both",
                prompt, *record.context_of));
        }
    }
    impl_->write_part(part_file_name_of_prompt(prompt),
                      [&](hid_t file) { store_prompt(file, fmt::format("/prompts/{}", prompt), record, model); });
    impl_->prompts[prompt] = record;
    impl_->parts.prompts.insert(prompt);
}

void Writer::write_run(int prompt, int run, const RunRecord& record) {
    if (run < 0) throw std::invalid_argument("runs are numbered from 0");
    if (Impl::contains(impl_->base, prompt, run))
        throw std::logic_error(
            fmt::format("run {} of prompt {} is in the extended trace and cannot be replaced", run, prompt));
    const ModelAttributes& model = impl_->require_model();
    const PromptAttributes& attributes = impl_->require_prompt(prompt);
    const bool shares = attributes.context_of && impl_->can_share(*attributes.context_of, prompt, run, record);
    SharedScores::Found found;
    if (!shares) {
        const h5::Guard guard;
        found = impl_->shared_scores.find(prompt, run, record);
    }
    impl_->write_part(part_file_name_of_run(prompt, run), [&](hid_t file) {
        store_run(file, fmt::format("/prompts/{}/runs/{}", prompt, run), record, model, attributes, shares,
                  found.source);
    });
    if (!shares) impl_->shared_scores.written(prompt, run, found);
    impl_->parts.runs[prompt].insert(run);
}

void Writer::remove_prompt(int prompt) {
    try {
        // Readers of the folder must not find runs without their prompt.
        for (const int run : impl_->parts.runs[prompt]) impl_->remove_part(file_of_run(impl_->folder, prompt, run));
        impl_->remove_part(impl_->folder / part_file_name_of_prompt(prompt));
    } catch (const fs::filesystem_error& failure) {
        throw WriteFailed(
            fmt::format("cannot remove a part of {}: {}", impl_->folder.string(), failure.code().message()));
    }
    impl_->parts.runs.erase(prompt);
    impl_->parts.prompts.erase(prompt);
    impl_->prompts.erase(prompt);
}

void Writer::write_results(std::string_view task, int batch, const std::vector<ResultRow>& rows) {
    const bool plain = !task.empty() && task.front() != '.' && std::all_of(task.begin(), task.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    });
    if (!plain || batch < 0) {
        throw std::invalid_argument(fmt::format(
            "expected a task name of letters, digits, '_', '-' and '.', and a batch number of 0 or more, found "
            "\"{}\" and {}",
            task, batch));
    }
    impl_->write_part(part_file_name_of_results(task, batch),
                      [&](hid_t file) { store_results(file, fmt::format("/results/{}", task), rows); });
    impl_->parts.results[std::string(task)].insert(batch);
    impl_->results[{std::string(task), batch}] = rows;
}

std::uint64_t Writer::stored_bytes() const { return impl_->stored_bytes; }

void Writer::finish() {
    if (impl_->finished) throw std::logic_error("this trace is already finished");
    try {
        join_parts(impl_->folder, impl_->path, impl_->replaced);
    } catch (const h5::Failure& failure) {
        throw WriteFailed(fmt::format("cannot write {}: {}", impl_->path.string(), failure.what()));
    } catch (const ReadFailed& failure) {
        throw with_file_kept(failure);
    }
    impl_->finished = true;
    try {
        impl_->root.complete = true;  // readers of the folder now open the finished trace instead
        write_folder_record(impl_->folder, impl_->root);
        remove_folder(impl_->folder);
    } catch (const std::runtime_error&) {
        // The trace is complete, and the next command removes the folder.
    }
    impl_->lock = FolderLock();
}

}  // namespace kvscope::trace
