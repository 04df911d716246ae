#include "trace/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "json/bounded_json.h"
#include "trace/hdf5.h"
#include "trace/input_file.h"
#include "trace/join.h"
#include "trace/load.h"
#include "trace/output_file.h"
#include "trace/part_folder.h"
#include "trace/shared_scores.h"
#include "trace/source.h"
#include "trace/storable_text.h"
#include "trace/store.h"

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
    return !parsed.is_discarded() && parsed == recipe;
}

enum class Found { nothing, same, part, other };  // part: of a recipe that is a part of the wanted one

using IsPart = std::function<bool(const std::string& recipe_json)>;

Found found_recipe(const nlohmann::json& recipe, const std::string& other, const IsPart& is_part) {
    if (same_recipe(recipe, other)) return Found::same;
    return is_part && is_part(other) ? Found::part : Found::other;
}

// What the file at the output is. A folder or a device is never replaced, not even by force.
Found look_at_file(const fs::path& path, const nlohmann::json& recipe, const IsPart& is_part = {}) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) return Found::nothing;
        throw WriteFailed(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
    }
    if (S_ISLNK(status.st_mode) && ::stat(path.c_str(), &status) != 0) return Found::other;
    if (!S_ISREG(status.st_mode)) {
        throw WriteFailed(fmt::format("cannot write {}: expected the name of a file, found a {}", path.string(),
                                      S_ISDIR(status.st_mode) ? "folder" : "device"));
    }
    try {
        const h5::Guard guard;
        const Source source(path);
        return source.root.complete ? found_recipe(recipe, source.root.recipe_json, is_part) : Found::other;
    } catch (const ReadFailed&) {
        throw;
    } catch (const TraceError&) {
        return Found::other;
    }
}

// What the .part folder is; one in which nothing was finished, not even trace.json, counts as nothing.
Found look_at_folder(const fs::path& folder, const nlohmann::json& recipe, const IsPart& is_part = {}) {
    std::error_code error;
    if (!fs::exists(folder, error)) return Found::nothing;
    if (!fs::is_directory(folder, error)) return Found::other;
    try {
        const auto record = read_folder_record(folder);
        if (record) return found_recipe(recipe, record->recipe_json, is_part);
        for (const auto& entry : fs::directory_iterator(folder)) {
            const std::string name = entry.path().filename().string();
            if (name != "lock" && name != base_part() && !std::string_view(name).ends_with(".tmp")) return Found::other;
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

// What can be done about a part that may be sound.
ReadFailed still_there(const ReadFailed& failure) {
    return ReadFailed(
        fmt::format("{}; it is kept, as it may be sound: run the same command again when it can be read, or move it "
                    "elsewhere to have it made again",
                    failure.what()));
}

/// "16"; empty for what is too long to be read in a line.
std::string in_a_word(const nlohmann::json& value) {
    constexpr size_t most_characters = 40;
    const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return text.size() > most_characters ? "" : text;
}

/// "new_tokens: 16 there, 32 wanted", or the name alone. @param change an operation of JSON Patch upon `there`
std::string change_in_words(const nlohmann::json& there, const nlohmann::json& change) {
    const std::string path = change.at("path"), operation = change.at("op");
    const std::string is = operation == "add" ? "nothing" : in_a_word(there.at(nlohmann::json::json_pointer(path)));
    const std::string wanted = operation == "remove" ? "nothing" : in_a_word(change.at("value"));
    const bool is_behind_the_last = path.ends_with("/-");
    const std::string name = path.substr(1, path.size() - (is_behind_the_last ? 3 : 1));
    return is.empty() || wanted.empty() ? name : fmt::format("{}: {} there, {} wanted", name, is, wanted);
}

/// " (it differs in new_tokens: 16 there, 32 wanted; seed: 0 there, 1 wanted)": the first few; empty where one of the
/// recipes cannot be understood.
/// @param may_extend what is wanted beyond the last entry of a list is no reason to refuse
std::string difference(const nlohmann::json& recipe, const std::string& other, bool may_extend) {
    constexpr size_t most_named = 3;
    const auto there = bounded_json::parse_or_discard(other);
    if (!there.is_object() || !recipe.is_object()) return {};
    std::vector<std::string> named;
    auto changes = nlohmann::json::diff(there, recipe);
    const auto adds_to_a_list = [](const nlohmann::json& change) {
        return change.at("path").get<std::string>().ends_with("/-");
    };
    if (may_extend) changes.erase(std::remove_if(changes.begin(), changes.end(), adds_to_a_list), changes.end());
    for (const auto& change : changes) {
        if (named.size() == most_named) break;
        named.push_back(change_in_words(there, change));
    }
    if (named.empty()) return {};
    const size_t left = changes.size() - named.size();
    return fmt::format(" (it differs in {}{})", fmt::join(named, "; "),
                       left > 0 ? fmt::format("; and {} more", left) : "");
}

/// Of a trace at the output; empty where that is none.
std::string difference_of_file(const nlohmann::json& recipe, const fs::path& path, bool may_extend) {
    try {
        const h5::Guard guard;
        return difference(recipe, Source(path).root.recipe_json, may_extend);
    } catch (const TraceError&) {
        return {};  // whatever it is, it is another thing
    }
}

[[noreturn]] void refuse_existing(const fs::path& path, const std::string& why = {}) {
    throw ReplaceableOutputExists(
        fmt::format("{} exists and is not what is to be written{}; choose another output, or have it replaced",
                    path.string(), why));
}

/// @param output the complete trace beside it, to which what is wanted can be added; empty where there is none
[[noreturn]] void refuse_existing_folder(const fs::path& folder, const nlohmann::json& recipe, bool may_extend,
                                         const fs::path& output) {
    std::string why;
    try {
        if (const auto record = read_folder_record(folder)) why = difference(recipe, record->recipe_json, may_extend);
    } catch (const TraceError&) {
        // Whatever it is, it is another thing.
    }
    if (output.empty()) refuse_existing(folder, why);
    std::error_code error;
    throw OutputExists(fmt::format(
        "{} holds an unfinished {} of {}, which is not what is to be written{}; finish it with the command that began "
        "it, or remove the folder to give up what is finished in it. {} itself is complete, and stays as it is",
        folder.string(), fs::exists(folder / base_part(), error) ? "extension" : "replacement", output.string(), why,
        output.string()));
}

/// Whoever writes into the folder has to be waited for, whatever it contains. @throws OutputBusy
void require_free(const fs::path& folder) {
    std::error_code error;
    if (!fs::exists(folder / "lock", error)) return;
    try {
        const FolderLock held(folder);
    } catch (const WriteFailed&) {
        // No lock can be taken there: whether another process writes is not known.
    }
}

// Force replaces traces, whatever is left of them: not a text that somebody has named as the output by mistake.
void require_replaceable(const fs::path& path) {
    std::error_code error;
    const std::string extension = path.extension().string();
    if (extension == ".h5" || extension == ".hdf5" || fs::file_size(path, error) == 0 || error) return;
    const h5::Guard guard;
    if (H5Fis_hdf5(path.c_str()) > 0) return;
    throw OutputExists(
        fmt::format("{} is no trace, and traces alone are replaced: choose another output", path.string()));
}

void require_folder_can_be_made(const fs::path& output) {
    const fs::path parent = output.parent_path().empty() ? fs::path(".") : output.parent_path();
    std::error_code error;
    if (!fs::is_directory(parent, error)) {
        throw WriteFailed(fmt::format("cannot write {}: there is no folder {}", output.string(), parent.string()));
    }
}

/// What is wrong where the folder of an unfinished trace cannot be made, and what to do.
std::string problem_of_folder(const fs::path& folder, int error) {
    const fs::path parent = folder.parent_path().empty() ? fs::path(".") : folder.parent_path();
    const std::string reason = std::strerror(error);
    if (error == ENAMETOOLONG) return fmt::format("{}; choose a shorter output", reason);
    if (error == ENOSPC || error == EDQUOT) return fmt::format("{}; make room and run the same command again", reason);
    return fmt::format("nothing new can be put into {} ({}); choose an output in another folder", parent.string(),
                       reason);
}

/// @returns whether it was not there
bool make_folder(const fs::path& folder) {
    const int error = ::mkdir(folder.c_str(), 0777) == 0 ? 0 : errno;
    std::error_code ignored;
    if (error == EEXIST && !fs::is_directory(folder, ignored)) {
        throw OutputExists(
            fmt::format("{} is in the way: the unfinished trace would be a folder of that name; move it "
                        "elsewhere or choose another output",
                        folder.string()));
    }
    if (error != 0 && error != EEXIST) {
        throw WriteFailed(fmt::format("cannot create {}, the unfinished trace: {}", folder.string(),
                                      problem_of_folder(folder, error)));
    }
    return error == 0;
}

void require_own_entries(const fs::path& folder) {
    if (const std::string name = foreign_entry(folder); !name.empty())
        throw OutputExists(
            fmt::format("{} is in the way: {} in it was not made by kvscope; move the folder "
                        "elsewhere or choose another output",
                        folder.string(), name));
}

// By force, but only what a writer makes: a folder of someone else's keeps its contents.
void empty_folder(const fs::path& folder) {
    require_own_entries(folder);
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().filename() != "lock") found.push_back(entry.path());
    for (const fs::path& path : found) fs::remove(path);
}

// By force also what cannot be read is replaced, once there is something whole to replace it with.
Found look_at_output(const fs::path& path, const nlohmann::json& recipe, const WriterOptions& options) {
    try {
        return look_at_file(path, recipe, options.is_part_of_it);
    } catch (const ReadFailed&) {
        if (!options.force) throw;
        return Found::other;
    }
}

/// @returns what is at the output
Found require_usable_output(const fs::path& path, const nlohmann::json& recipe, const WriterOptions& options) {
    require_folder_can_be_made(path);
    const bool may_extend = options.is_part_of_it != nullptr;
    const Found file = look_at_output(path, recipe, options);
    if (file == Found::same && !options.force) return file;
    if (file == Found::other && !options.force) refuse_existing(path, difference_of_file(recipe, path, may_extend));
    if (file == Found::other) require_replaceable(path);
    const fs::path folder = part_folder_of(path);
    if (!options.force && look_at_folder(folder, recipe, options.is_part_of_it) == Found::other) {
        require_free(folder);
        refuse_existing_folder(folder, recipe, may_extend, file == Found::part ? path : fs::path());
    }
    return file;
}

}  // namespace

OutputState check_output(const fs::path& path, std::string_view recipe_json, const WriterOptions& options) {
    const nlohmann::json recipe = parse_recipe(recipe_json);
    const Found file = require_usable_output(path, recipe, options);
    if (file == Found::same && !options.force) return OutputState::complete;
    const fs::path folder = part_folder_of(path);
    std::error_code error;
    if (options.force && fs::exists(folder / base_part(), error)) return OutputState::absent;
    if (make_folder(folder)) {
        ::rmdir(folder.c_str());
        return file == Found::part ? OutputState::resumable : OutputState::absent;
    }
    const Found found = look_at_folder(folder, recipe, options.is_part_of_it);
    if (found == Found::other) require_own_entries(folder);
    return found == Found::same || found == Found::part || file == Found::part ? OutputState::resumable
                                                                               : OutputState::absent;
}

OutputState output_state(const fs::path& path, std::string_view recipe_json) {
    const nlohmann::json recipe = parse_recipe(recipe_json);
    const Found file = look_at_file(path, recipe);
    if (file == Found::same) return OutputState::complete;
    if (file == Found::other) return OutputState::other;
    switch (look_at_folder(part_folder_of(path), recipe)) {
        case Found::nothing:
            return OutputState::absent;
        case Found::same:
            return OutputState::resumable;
        case Found::part:
        case Found::other:
            break;
    }
    return OutputState::other;
}

struct Writer::Impl {
    fs::path path;  ///< the file itself, where the output is a link to it
    fs::path folder;
    std::optional<FileIdentity> replaced;  ///< what was at the path when the writer was opened
    FolderLock lock;
    RootAttributes root;
    Parts parts;
    Parts base;  ///< what lies in the trace that is extended; without results
    std::map<std::pair<std::string, int>, std::vector<ResultRow>> results;
    std::vector<std::string> set_aside;
    bool resumed = false;
    bool finished = false;
    std::optional<ModelAttributes> model;
    std::map<int, PromptAttributes> prompts;
    SharedScores shared_scores;

    Impl(fs::path output, std::string recipe_json, const WriterOptions& options)
        : path(linked_output(output)),
          folder(part_folder_of(path)),
          replaced(identity_of(path)),
          shared_scores(folder) {
        const nlohmann::json recipe = parse_recipe(recipe_json);
        const Found file = require_usable_output(path, recipe, options);
        if (file == Found::same && !options.force) {
            drop_leftovers(recipe);
            throw AlreadyComplete(fmt::format("{} is complete already", path.string()));
        }
        make_folder(folder);
        lock = FolderLock(folder);
        if (identity_of(path) != replaced)
            throw OutputExists(fmt::format(
                "{} was replaced by another kvscope in this moment; run the same command again", path.string()));
        open_folder(recipe, std::move(recipe_json), options, file == Found::part && !options.force);
    }

    // Locked: decides again, as another process may have worked here in between.
    void open_folder(const nlohmann::json& recipe, std::string recipe_json, const WriterOptions& options,
                     bool extends_output) {
        try {
            Found found = look_at_folder(folder, recipe, options.is_part_of_it);
            if (found == Found::other && !options.force)
                refuse_existing_folder(folder, recipe, options.is_part_of_it != nullptr,
                                       extends_output ? path : fs::path());
            // After its parts were joined into the file, a folder is a leftover.
            const auto record =
                found == Found::same || found == Found::part ? read_folder_record(folder) : std::nullopt;
            const bool is_leftover = extends_output && record && record->complete;
            if (found == Found::other || is_leftover || (options.force && fs::exists(folder / base_part()))) {
                empty_folder(folder);
                found = Found::nothing;
            }
            remove_temporary_files(folder);
            if (found == Found::same || found == Found::part) {
                root = *read_folder_record(folder);
                const bool was_joined = std::exchange(root.complete, false);  // the trace is gone since
                if (found == Found::part) root.recipe_json = std::move(recipe_json);
                if (found == Found::part || was_joined) write_folder_record(folder, root);
                parts = list_parts(folder);
                resumed = !parts.empty();
                load_base();
                load_parts();
                return;
            }
            fs::remove(folder / base_part());  // that of a writer which was killed before it had written trace.json
            if (extends_output) add_base(folder, path);
        } catch (const fs::filesystem_error& failure) {
            throw WriteFailed(fmt::format("cannot use {}: {}", folder.string(), failure.code().message()));
        }
        root.generator = storable_text(options.generator);
        root.created_utc = utc_text(options.created.value_or(std::time(nullptr)));
        if (extends_output) load_base();
        root.recipe_json = std::move(recipe_json);
        write_folder_record(folder, root);
    }

    // Nobody could make again what is damaged here, and the trace that is extended stays as it is.
    void load_base() {
        if (!fs::exists(folder / base_part())) return;
        const h5::Guard guard;
        const std::string where = path.string();
        try {
            Source source(folder / base_part());
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
        } catch (const h5::Failure& failure) {
            h5::throw_unreadable(where, failure);
        }
    }

    static bool contains(const Parts& those, int prompt, int run) {
        const auto runs = those.runs.find(prompt);
        return runs != those.runs.end() && runs->second.contains(run);
    }
    bool has_run(int prompt, int run) const { return contains(parts, prompt, run) || contains(base, prompt, run); }

    // A crash between the last rename and the removal of the folder leaves the folder.
    void drop_leftovers(const nlohmann::json& recipe) const {
        if (look_at_folder(folder, recipe) != Found::same) return;
        try {
            const FolderLock held(folder);
            remove_folder(folder);
        } catch (const std::runtime_error&) {
            // In use, or not ours to remove: harmless beside a complete trace.
        }
    }

    // Attributes are needed for the shapes. A part that is damaged is set aside and made again; one that only cannot be
    // read now, for want of memory or of descriptors, may be hours of work and ends this.
    void load_parts() {
        const h5::Guard guard;
        const auto readable = [&](const std::string& part, auto load) {
            const fs::path file = folder / part;
            try {
                try {
                    load(open_part(file).get(), file.string());
                } catch (const h5::Failure& failure) {
                    h5::throw_unreadable(file.string(), failure);
                }
                return true;
            } catch (const ReadFailed& failure) {
                throw still_there(failure);
            } catch (const TraceError& damage) {
                set_aside.push_back(set_damaged_part_aside(file, damage.what()));
                return false;
            }
        };
        parts.model = parts.model && readable(model_part(), [&](hid_t file, const std::string& where) {
                          model = load_model(h5::open_group(file, "/model").get(), where);
                      });
        std::erase_if(parts.prompts, [&](int i) {
            return !readable(prompt_part(i), [&](hid_t file, const std::string& where) {
                prompts[i] = load_prompt(h5::open_group(file, fmt::format("/prompts/{}", i)).get(), where);
            });
        });
        for (auto& [i, runs] : parts.runs) {
            std::erase_if(runs, [&, prompt = i](int j) {
                return !readable(run_part(prompt, j), [&](hid_t file, const std::string& where) {
                    const h5::Handle group = h5::open_group(file, fmt::format("/prompts/{}/runs/{}", prompt, j));
                    load_run(group.get(), where);
                    shared_scores.add_part(prompt, j, load_scores_of(group.get(), where));
                });
            });
            std::set<int> there = runs;
            if (const auto held = base.runs.find(i); held != base.runs.end())
                there.insert(held->second.begin(), held->second.end());
            for (const int orphan : shared_scores.forget_orphans(i, there)) {
                set_aside.push_back(set_damaged_part_aside(folder / run_part(i, orphan),
                                                           "its scores lie in another run's part, which is gone"));
                runs.erase(orphan);
            }
        }
        for (auto& [name, batches] : parts.results) {
            std::erase_if(batches, [&, &task = name](int batch) {
                return !readable(results_part(task, batch), [&](hid_t file, const std::string& where) {
                    results[{task, batch}] = load_results(h5::open_data_set(file, "/results/" + task).get(), where);
                });
            });
        }
    }

    template <class Store>
    void write_part(const std::string& name, Store store) {
        if (finished) throw std::logic_error("this trace is finished: nothing can be written to it");
        fs::path temporary = folder / name;
        temporary += ".tmp";
        try {
            std::unique_ptr<OutputFile> file;
            {
                const h5::Guard guard;
                file = std::make_unique<OutputFile>(temporary);
                store_root(file->id(), root);
                store(file->id());
                file->close();
            }
            file->commit(folder / name);
        } catch (const h5::Failure& failure) {
            throw WriteFailed(fmt::format("cannot write {}: {}", temporary.string(), failure.what()));
        }
    }

    // Whether the run of that number of the prompt `source` holds entries that others can share. Where
    // the record says which entries it kept, they must be those.
    bool can_share(int source, int prompt, int run, const RunRecord& record) const {
        if (!has_run(source, run)) return false;
        const h5::Guard guard;
        const fs::path part = file_of_run(folder, source, run);
        try {
            const h5::Handle file = open_part(part);
            return can_share(file.get(), source, prompt, run, record);
        } catch (const h5::Failure& failure) {
            h5::throw_unreadable(part.string(), failure);
        }
    }

    static bool can_share(hid_t file, int source, int prompt, int run, const RunRecord& record) {
        const auto in_file = [&](const schema::DataSet& data_set) {
            return fmt::format("/prompts/{}/runs/{}/{}", source, run, data_set.path);
        };
        if (!h5::exists(file, in_file(schema::run::kept_offsets))) return false;
        const auto same = [&](const schema::DataSet& data_set, const auto& values) {
            using T = typename std::remove_cvref_t<decltype(values)>::value_type;
            return h5::read<T>(h5::open_data_set(file, in_file(data_set)).get()) == values;
        };
        if (!record.kept_offsets.empty() && (!same(schema::run::kept_offsets, record.kept_offsets) ||
                                             !same(schema::run::kept_indices, record.kept_indices))) {
            throw std::invalid_argument(
                fmt::format("run {} of prompt {} shares the context of prompt {} but did not keep the same entries",
                            run, prompt, source));
        }
        return true;
    }

    const ModelAttributes& require_model() const {
        if (!model) throw std::invalid_argument("a trace's model must be written before its prompts");
        return *model;
    }
    const PromptAttributes& require_prompt(int prompt) const {
        const auto found = prompts.find(prompt);
        if (found == prompts.end()) {
            throw std::invalid_argument(fmt::format("prompt {} must be written before what depends on it", prompt));
        }
        return found->second;
    }
};

Writer::Writer(fs::path path, std::string recipe_json, WriterOptions options)
    : impl_(std::make_unique<Impl>(std::move(path), std::move(recipe_json), options)) {}
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
    impl_->write_part(model_part(), [&](hid_t file) { store_model(file, "/model", record); });
    impl_->model = record;
    impl_->parts.model = true;
}

void Writer::write_prompt(int prompt, const PromptRecord& record) {
    if (prompt < 0) throw std::invalid_argument("prompts are numbered from 0");
    if (impl_->base.prompts.contains(prompt))
        throw std::logic_error(fmt::format("prompt {} lies in the trace that is extended", prompt));
    const ModelAttributes& model = impl_->require_model();
    if (record.context_of) {
        const PromptAttributes& source = impl_->require_prompt(*record.context_of);
        if (*record.context_of >= prompt || record.query_aware || source.query_aware || source.context_of ||
            source.n_context != record.n_context || source.window != record.window) {
            throw std::invalid_argument(fmt::format(
                "prompt {} cannot share the context of prompt {}: expected an earlier prompt that shares none itself, "
                "with the same n_context and window, both with query_aware = 0",
                prompt, *record.context_of));
        }
    }
    impl_->write_part(prompt_part(prompt),
                      [&](hid_t file) { store_prompt(file, fmt::format("/prompts/{}", prompt), record, model); });
    impl_->prompts[prompt] = record;
    impl_->parts.prompts.insert(prompt);
}

void Writer::write_run(int prompt, int run, const RunRecord& record) {
    if (run < 0) throw std::invalid_argument("runs are numbered from 0");
    if (Impl::contains(impl_->base, prompt, run))
        throw std::logic_error(fmt::format("run {} of prompt {} lies in the trace that is extended", run, prompt));
    const ModelAttributes& model = impl_->require_model();
    const PromptAttributes& attributes = impl_->require_prompt(prompt);
    const bool shares = attributes.context_of && impl_->can_share(*attributes.context_of, prompt, run, record);
    SharedScores::Found found;
    if (!shares) {
        const h5::Guard guard;
        found = impl_->shared_scores.find(prompt, run, record);
    }
    impl_->write_part(run_part(prompt, run), [&](hid_t file) {
        store_run(file, fmt::format("/prompts/{}/runs/{}", prompt, run), record, model, attributes, shares,
                  found.source);
    });
    if (!shares) impl_->shared_scores.written(prompt, run, found);
    impl_->parts.runs[prompt].insert(run);
}

void Writer::write_results(std::string_view task, int batch, const std::vector<ResultRow>& rows) {
    const bool plain = !task.empty() && task.front() != '.' && std::all_of(task.begin(), task.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    });
    if (!plain || batch < 0) {
        throw std::invalid_argument(
            fmt::format("expected a task named with letters, digits, '_', '-' and '.', and a batch from 0 on, found "
                        "\"{}\" and {}",
                        task, batch));
    }
    impl_->write_part(results_part(task, batch),
                      [&](hid_t file) { store_results(file, fmt::format("/results/{}", task), rows); });
    impl_->parts.results[std::string(task)].insert(batch);
    impl_->results[{std::string(task), batch}] = rows;
}

void Writer::finish() {
    if (impl_->finished) throw std::logic_error("this trace is finished already");
    try {
        join_parts(impl_->folder, impl_->path, impl_->replaced);
    } catch (const h5::Failure& failure) {
        throw WriteFailed(fmt::format("cannot write {}: {}", impl_->path.string(), failure.what()));
    } catch (const ReadFailed& failure) {
        throw still_there(failure);
    }
    impl_->finished = true;
    try {
        impl_->root.complete = true;  // whoever reads the folder just now looks at the trace instead
        write_folder_record(impl_->folder, impl_->root);
        remove_folder(impl_->folder);
    } catch (const std::runtime_error&) {
        // The trace is whole; a folder that cannot be removed is dropped by the next command.
    }
    impl_->lock = FolderLock();
}

}  // namespace kvscope::trace
