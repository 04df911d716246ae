#include "trace/open_trace_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>

#include "common/bounded_json.h"
#include "common/json.h"
#include "trace/load_records.h"
#include "trace/part_folder.h"
#include "trace/recipe.h"
#include "trace/records/result_columns.h"
#include "trace/result_table.h"

namespace kvscope::trace {

namespace {

template <class Places>
std::optional<std::size_t> index_of(const Places& places, int number) {
    const auto found = std::find_if(places.begin(), places.end(), [&](const auto& p) { return p.number == number; });
    if (found == places.end()) return std::nullopt;
    return static_cast<std::size_t>(found - places.begin());
}

/// Closes the files when the last reader that shares them ends. Any thread may do so, because the Guard locks HDF5.
struct CloseFiles {
    void operator()(const OpenTraceFiles* files) const {
        const h5::Guard guard;
        delete files;
    }
};

/// Whether every row keeps all n positions, so that the positions need not be read.
bool keeps_all(const std::vector<std::uint64_t>& offsets, std::size_t n) {
    for (std::size_t row = 0; row < offsets.size(); ++row) {
        if (offsets[row] != row * n) return false;
    }
    return n > 0 && !offsets.empty();
}

/// @param problem empty if there is none
void refuse_problem_of_file(const std::string& where, const std::string& problem) {
    if (!problem.empty()) throw DamagedTrace(fmt::format("{}/{}", where, problem));
}

/// Returns the budget in the recipe of the run with this number, or "".
std::string find_requested_budget(const nlohmann::json& recipe, int run) {
    const nlohmann::json::json_pointer budget(fmt::format("/runs/{}/budget", run));
    return recipe.contains(budget) && recipe[budget].is_string() ? recipe[budget].get<std::string>() : "";
}

/// Completes the rows that an earlier version wrote, which have no model.
void add_experiment(std::vector<ResultRow>& rows, const ModelAttributes& model, const nlohmann::json& recipe) {
    RunAttributes of_recipe;
    add_origin_of_recipe(of_recipe, recipe);
    ResultRow known;
    known.device = of_recipe.device.value_or("");
    known.instructions = of_recipe.instructions.value_or("");
    if (recipe.is_object() && recipe.contains("seed") && recipe["seed"].is_number_unsigned())
        known.seed = recipe["seed"].get<std::uint64_t>();
    const nlohmann::json::json_pointer seen("/prompts/0/query_aware");
    if (recipe.is_object() && recipe.contains(seen) && recipe[seen].is_boolean())
        known.question_seen = recipe[seen] ? 1 : 0;
    for (ResultRow& row : rows) {
        if (!row.model.empty()) continue;
        row.model = model.name;
        row.dtype = model.dtype;
        row.device = known.device;
        row.instructions = known.instructions;
        row.seed = known.seed;
        row.question_seen = known.question_seen;
    }
}

}  // namespace

std::string place_name(const GroupPlace& place) { return fmt::format("{}: {}", place.file.string(), place.group); }

template <class Load>
auto OpenTraceFiles::load(const GroupPlace& place, const std::stop_token& stop, Load load_attributes) {
    throw_if_stopped(stop);
    return h5::with_place_in_errors(place_name(place), [&] {
        const h5::Handle group = h5::open_group(source_.open(place.file).get(), place.group);
        return load_attributes(group.get(), place_name(place));
    });
}

OpenTraceFiles::OpenTraceFiles(const std::filesystem::path& path, const std::stop_token& stop) : source_(path) {
    if (source_.model) model_ = load(*source_.model, stop, load_model);
    const nlohmann::json recipe = bounded_json::parse_or_discard(source_.root.recipe_json);
    for (const PromptPlace& place : source_.prompts) {
        Prompt& prompt = prompts_.emplace_back();
        prompt.attributes = load(place, stop, load_prompt);
        for (const GroupPlace& run : place.runs) {
            prompt.runs.push_back(load(run, stop, load_run));
            RunAttributes& attributes = prompt.runs.back();
            attributes.requested_budget = find_requested_budget(recipe, run.number);
            add_origin_of_recipe(attributes, recipe);
        }
    }
    const bool has_only_results = prompts_.empty() && !source_.results.empty();  // imported from another program
    if (!source_.is_folder && source_.root.complete && !model_ && !has_only_results) {
        throw DamagedTrace(fmt::format("{}: the group /model is missing", path.string()));
    }
}

std::shared_ptr<const OpenTraceFiles> OpenTraceFiles::open(const std::filesystem::path& path,
                                                           const std::stop_token& stop) {
    const auto open_now = [&](const std::filesystem::path& from) {
        const h5::Guard guard;
        return std::shared_ptr<const OpenTraceFiles>(new OpenTraceFiles(from, stop), CloseFiles{});
    };
    std::error_code error;
    const bool is_named = path.extension() == ".part" || std::filesystem::exists(path, error);
    const std::filesystem::path folder = is_named ? path : part_folder_of(path);
    if (const auto joined = find_joined_trace(folder)) return open_now(*joined);
    // If the writer finishes during the read, the read fails or misses parts. The joined trace is opened instead.
    try {
        auto found = open_now(path);
        const auto joined = found->source().is_folder ? find_joined_trace(folder) : std::nullopt;
        return joined ? open_now(*joined) : found;
    } catch (const std::runtime_error&) {
        const auto joined = find_joined_trace(folder);
        if (!joined) throw;
        return open_now(*joined);
    }
}

const ModelAttributes& OpenTraceFiles::model() const {
    if (!model_) throw DamagedTrace(fmt::format("{}: the model has not been written yet", source_.path.string()));
    return *model_;
}

const OpenTraceFiles::Prompt& OpenTraceFiles::prompt(int prompt) const {
    if (prompt < 0 || prompt >= n_prompts()) {
        throw std::out_of_range(fmt::format("{}: expected an index below {}, the number of prompts, found {}",
                                            source_.path.string(), n_prompts(), prompt));
    }
    return prompts_[static_cast<std::size_t>(prompt)];
}

const GroupPlace& OpenTraceFiles::group(Place place) const {
    if (place.prompt < 0) {
        model();
        return *source_.model;
    }
    prompt(place.prompt);
    const PromptPlace& at = source_.prompts[static_cast<std::size_t>(place.prompt)];
    return place.run < 0 ? at : at.runs.at(static_cast<std::size_t>(place.run));
}

bool OpenTraceFiles::has(Place place, const schema::DataSet& data_set, const std::stop_token& stop) const {
    const h5::Guard guard;
    throw_if_stopped(stop);
    return find(place, data_set) != nullptr;
}

bool OpenTraceFiles::lies_in(const GroupPlace& place, const schema::DataSet& data_set) const {
    const std::string path = place.group + "/" + std::string(data_set.path);
    return h5::with_place_in_errors(place_name(place),
                                    [&] { return h5::exists(source_.open(place.file).get(), path); });
}

/// Returns the place's group or the group of the run that stores its scores. nullptr if both groups lack the data set.
const GroupPlace* OpenTraceFiles::find_among_runs(Place place, const schema::DataSet& data_set) const {
    const GroupPlace& own = group(place);
    if (lies_in(own, data_set)) return &own;
    if (!source_.is_folder || place.run < 0 || &data_set != &schema::run::scores) return nullptr;
    const auto number = h5::with_place_in_errors(place_name(own), [&] {
        const h5::Handle run = h5::open_group(source_.open(own.file).get(), own.group);
        return load_score_source_run_number(run.get(), place_name(own));
    });
    const auto& runs = source_.prompts[static_cast<std::size_t>(place.prompt)].runs;
    const auto index = number ? index_of(runs, *number) : std::nullopt;
    return index && lies_in(runs[*index], data_set) ? &runs[*index] : nullptr;
}

/// Like find_among_runs(), but in an unfinished trace also searches the prompt that shares the context.
const GroupPlace* OpenTraceFiles::find(Place place, const schema::DataSet& data_set) const {
    if (const GroupPlace* here = find_among_runs(place, data_set)) return here;
    if (place.prompt < 0 || !prompt(place.prompt).attributes.context_of) return nullptr;

    const auto shared = [&](const auto& list) {
        return std::find(std::begin(list), std::end(list), &data_set) != std::end(list);
    };
    const auto source_prompt = index_of(source_.prompts, *prompt(place.prompt).attributes.context_of);
    if (!source_prompt || static_cast<int>(*source_prompt) == place.prompt) return nullptr;
    Place there = Place::of_prompt(static_cast<int>(*source_prompt));
    if (place.run < 0) {
        if (!shared(schema::prompt::shared_data_sets)) return nullptr;
    } else {
        if (!shared(schema::run::shared_data_sets)) return nullptr;
        const auto run_index = index_of(source_.prompts[*source_prompt].runs, group(place).number);
        if (!run_index) return nullptr;
        there.run = static_cast<int>(*run_index);
    }
    return find_among_runs(there, data_set);
}

GroupPlace OpenTraceFiles::find_data_set(Place place, const schema::DataSet& data_set) const {
    const GroupPlace* at = find(place, data_set);
    if (at == nullptr) {
        throw DamagedTrace(fmt::format("{}/{}: the data set is missing", place_name(group(place)), data_set.path));
    }
    return {at->file, fmt::format("{}/{}", at->group, data_set.path)};
}

Extents OpenTraceFiles::extents(Place place) const {
    if (place.prompt < 0) return Extents(model());
    const Prompt& p = prompt(place.prompt);
    if (place.run < 0) return {model(), p.attributes};
    return {model(), p.attributes, p.runs.at(static_cast<std::size_t>(place.run))};
}

void OpenTraceFiles::require_shape(Place place, const schema::DataSet& data_set, const std::vector<std::size_t>& found,
                                   const std::string& where) const {
    const Extents known = extents(place);
    std::vector<std::string> expected;
    bool same = found.size() == static_cast<std::size_t>(data_set.rank);
    for (int i = 0; i < data_set.rank; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto extent = known.of(data_set.dims[at]);
        same = same && (!extent || found[at] == *extent);
        expected.push_back(extent ? std::to_string(*extent) : "any");
    }
    if (!same) {
        throw DamagedTrace(fmt::format("{}: expected the shape ({}), found ({})", where, fmt::join(expected, ", "),
                                       fmt::join(found, ", ")));
    }
}

std::shared_ptr<const Kept> OpenTraceFiles::cached_kept(int prompt, int run) const {
    const std::lock_guard lock(kept_mutex_);
    const auto found = kept_.find({prompt, run});
    return found == kept_.end() ? nullptr : found->second;
}

std::shared_ptr<const Kept> OpenTraceFiles::kept(int prompt, int run, const std::stop_token& stop) const {
    if (auto known = cached_kept(prompt, run)) return known;
    const h5::Guard guard;
    if (auto known = cached_kept(prompt, run)) return known;
    auto kept = read_kept(prompt, run, stop);
    const std::lock_guard lock(kept_mutex_);
    kept_[{prompt, run}] = kept;
    return kept;
}

std::shared_ptr<const Kept> OpenTraceFiles::read_kept(int prompt, int run, const std::stop_token& stop) const {
    const Place place = Place::of_run(prompt, run);
    auto out = std::make_shared<Kept>();
    out->n_layers = static_cast<std::size_t>(model().n_layers);
    out->n_rows = extents(place).rows();
    out->offsets = with_data_set(place, schema::run::kept_offsets, stop,
                                 [](hid_t open) { return h5::read_data_set<std::uint64_t>(open); });
    const auto n = static_cast<std::size_t>(this->prompt(prompt).attributes.visible_tokens());
    out->indices = with_data_set(place, schema::run::kept_indices, stop, [&](hid_t open) {
        const h5::DataSetInfo found = h5::data_set_info(open);
        if (!keeps_all(out->offsets, n) || found.shape[0] != out->offsets.back())
            return h5::read_data_set<std::uint32_t>(open);
        h5::require_plausible_shape(found);
        std::vector<std::uint32_t> all(found.shape[0]);
        for (std::size_t row = 0; row < all.size(); row += n) std::iota(&all[row], &all[row] + n, 0U);
        return all;
    });
    refuse_problem_of_file(place_name(group(place)), problem_of_kept(out->offsets, out->indices, n));
    read_storage(place, *out, stop);
    return out;
}

void OpenTraceFiles::read_storage(Place place, Kept& kept, const std::stop_token& stop) const {
    const auto read = [&]<class T>(const schema::DataSet& data_set, std::vector<T>& out) {
        if (!has(place, data_set, stop)) return;
        out = with_data_set(place, data_set, stop, [](hid_t open) { return h5::read_data_set<T>(open); });
    };
    // The entries stay readable if a measure is damaged. Views report the damage.
    const auto read_measure = [&](const schema::DataSet& data_set, auto& out) {
        try {
            read(data_set, out);
        } catch (const DamagedTrace&) {
            out.clear();
        }
    };
    read_measure(schema::run::stored_entries, kept.stored_entries);
    read_measure(schema::run::stored_is_whole, kept.is_whole);
    if (kept.is_whole.size() != kept.indices.size()) kept.is_whole.clear();
    read_measure(schema::run::stored_key_error, kept.key_error);
    read_measure(schema::run::stored_value_error, kept.value_error);
    read(schema::run::merged_token_entry, kept.token_entry);
    read(schema::run::merged_cardinality, kept.cardinality);
    const std::string where = place_name(group(place));
    if (!kept.cardinality.empty() && kept.cardinality.size() != kept.indices.size()) {
        throw DamagedTrace(fmt::format("{}/merged/cardinality: expected {} numbers, one per entry, found {}", where,
                                       kept.indices.size(), kept.cardinality.size()));
    }
    const std::size_t n_tokens = kept.token_entry.size() / std::max<std::size_t>(kept.offsets.size() - 1, 1);
    refuse_problem_of_file(where, problem_of_token_entries(kept.offsets, kept.token_entry, n_tokens));
    if (kept.merges()) kept.find_held_tokens();
}

const std::vector<GroupPlace>& OpenTraceFiles::result_tables(std::string_view task) const {
    const auto found = source_.results.find(std::string(task));
    if (found == source_.results.end()) {
        throw std::out_of_range(
            fmt::format("{}: there are no results of the task \"{}\"", source_.path.string(), task));
    }
    return found->second;
}

std::span<const ResultRow> OpenTraceFiles::results(std::string_view task, const std::stop_token& stop) const {
    const std::lock_guard lock(results_mutex_);
    const auto known = results_.find(task);
    if (known != results_.end()) return known->second;
    return results_.emplace(task, read_results(task, stop)).first->second;
}

std::vector<ResultRow> OpenTraceFiles::read_results(std::string_view task, const std::stop_token& stop) const {
    h5::Guard guard;
    constexpr std::size_t rows_at_once = 40000;
    std::vector<ResultRow> out;
    for (const GroupPlace& place : result_tables(task)) {
        std::size_t n_rows = 0, n_read = 0;
        do {  // reads in pieces, so that other threads can read between two pieces
            throw_if_stopped(stop);
            h5::with_place_in_errors(place_name(place), [&] {
                const h5::Handle table = h5::open_data_set(source_.open(place.file).get(), place.group);
                if (n_read == 0) {
                    n_rows = n_rows_of_table(table.get(), place_name(place));
                    out.resize(out.size() + n_rows);
                }
                const RowRange piece{n_read, std::min(rows_at_once, n_rows - n_read)};
                load_results_into(out.data() + out.size() - n_rows + n_read, table.get(), place_name(place), piece);
                n_read += piece.count;
            });
            guard.let_others();
        } while (n_read < n_rows);
    }
    const auto lacks_experiment = [](const ResultRow& row) { return row.model.empty(); };
    if (model_ && std::ranges::any_of(out, lacks_experiment))
        add_experiment(out, *model_, bounded_json::parse_or_discard(source_.root.recipe_json));
    if (!out.empty() && (source_.is_folder || out.front().data_hash.empty())) set_data_hash(out);
    return out;
}

std::size_t OpenTraceFiles::n_results(std::string_view task, const std::stop_token& stop) const {
    const h5::Guard guard;
    std::size_t n_rows = 0;
    for (const GroupPlace& place : result_tables(task)) {
        throw_if_stopped(stop);
        n_rows += h5::with_place_in_errors(place_name(place), [&] {
            const h5::Handle table = h5::open_data_set(source_.open(place.file).get(), place.group);
            return n_rows_of_table(table.get(), place_name(place));
        });
    }
    return n_rows;
}

const ResultRow* OpenTraceFiles::stored_row(int prompt, int run, const std::stop_token& stop) const {
    const std::lock_guard lock(results_mutex_);
    if (!rows_) rows_ = read_rows_of_runs(stop);
    const auto found = rows_->find({prompt, run});
    return found == rows_->end() ? nullptr : &found->second;
}

OpenTraceFiles::RowsOfRuns OpenTraceFiles::read_rows_of_runs(const std::stop_token& stop) const {
    const auto tables = source_.results.find(std::string(schema::root::prompt_results));
    if (tables == source_.results.end()) return {};
    if (source_.is_folder && tables->second.size() > 1) return {};  // rows of prompts whose runs are not stored
    std::span<const ResultRow> stored;
    std::set<std::string_view> missing;  // columns of later versions
    try {
        const h5::Guard guard;
        for (const GroupPlace& place : tables->second) {
            const auto columns = h5::with_place_in_errors(place_name(place), [&] {
                return columns_of_table(h5::open_data_set(source_.open(place.file).get(), place.group).get());
            });
            for (const ResultColumn& column : result_columns)
                if (!columns.contains(column.name)) missing.insert(column.name);
        }
        stored = results(tables->first, stop);
    } catch (const DamagedTrace&) {
        return {};  // find_problems() reports the table, and the rows are computed
    }
    RowsOfRuns rows;
    auto next = stored.begin();
    for (int i = 0; i < n_prompts(); ++i) {
        const ResultRow of_prompt = row_of_prompt(model(), prompt(i).attributes);
        for (int run = 0; run < static_cast<int>(prompt(i).runs.size()) && next != stored.end(); ++run) {
            ResultRow expected = of_prompt;
            add_run_attributes(expected, prompt(i).runs[static_cast<std::size_t>(run)]);
            const bool is_of_run = std::ranges::all_of(result_columns, [&](const ResultColumn& column) {
                return column.source != ValueFrom::attributes || missing.contains(column.name) ||
                       have_same_value(column, *next, expected);
            });
            if (!is_of_run) continue;
            ResultRow& row = rows[{i, run}] = *next++;
            if (!missing.empty()) row.coverage = ResultRow::unknown;  // so that all measures are computed
        }
    }
    return rows;
}

}  // namespace kvscope::trace
