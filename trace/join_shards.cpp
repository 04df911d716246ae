#include "trace/join_shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "common/bounded_json.h"
#include "common/stopped.h"
#include "trace/group_locations.h"
#include "trace/hdf5/hdf5.h"
#include "trace/hdf5/output_file.h"
#include "trace/join_parts.h"
#include "trace/part_folder.h"
#include "trace/recipe.h"
#include "trace/result_table.h"
#include "trace/shard.h"
#include "trace/writer.h"

namespace kvscope::trace {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t rows_at_once = std::size_t{1} << 15;  // about 50 MB

struct ShardTrace {
    fs::path path;
    Shard shard{};
    nlohmann::ordered_json recipe;
    std::string created_utc;
    std::string job_hash{};
    std::size_t n_prompts_of_job = 0, n_contexts_of_job = 0;
    std::vector<int> numbers{};           ///< of its prompts in the job
    std::vector<std::int64_t> batches{};  ///< ascending numbers of its prompts or samples in the table of results
};

bool is_of_task(const nlohmann::ordered_json& recipe) { return recipe.contains("task"); }

std::string table_name(const nlohmann::ordered_json& recipe) {
    return is_of_task(recipe) ? recipe.at("task").get<std::string>() : std::string(schema::root::prompt_results);
}

/// Requires an h5::Guard.
ShardTrace read_shard(const fs::path& path) {
    std::error_code error;
    if (fs::is_directory(path, error) || (!fs::exists(path, error) && fs::exists(part_folder_of(path), error)))
        throw TraceError(fmt::format("{} is an unfinished shard: run its command again, then join", path.string()));
    const Source source(path);
    ShardTrace out{.path = path,
                   .recipe = bounded_json::parse_or_discard<nlohmann::ordered_json>(source.root.recipe_json),
                   .created_utc = source.root.created_utc};
    const auto& recipe = out.recipe;
    nlohmann::json entry;  // without the texts of the prompts
    if (recipe.is_object() && recipe.contains(recipe_keys::shard))
        entry[recipe_keys::shard] = nlohmann::json(recipe[recipe_keys::shard]);
    const auto shard = shard_of_recipe(entry);
    if (!shard || !source.root.complete)
        throw NotATrace(
            fmt::format("{}: expected a trace that a command with --shard wrote, found another trace", path.string()));
    out.shard = *shard;
    try {
        const auto& job = recipe.at(recipe_keys::job);
        out.job_hash = job.at("sha256").get<std::string>();
        out.n_prompts_of_job = job.at("prompts").get<std::size_t>();
        out.n_contexts_of_job = job.at("contexts").get<std::size_t>();
        out.numbers = job.at("numbers").get<std::vector<int>>();
        for (std::size_t i = 0; i < recipe.at("prompts").size(); ++i)
            out.batches.push_back(is_of_task(recipe) ? recipe["prompts"][i].at("number").get<std::int64_t>()
                                                     : out.numbers.at(i));
        std::ranges::sort(out.batches);
        [[maybe_unused]] const std::string table = table_name(recipe);
        if (out.numbers.size() == out.batches.size() && !recipe.at("runs").empty() &&
            std::ranges::is_sorted(out.numbers))
            return out;
    } catch (const nlohmann::json::exception&) {
        // as for a wrong number of prompts
    } catch (const std::out_of_range&) {
        // as for a wrong number of prompts
    }
    throw DamagedTrace(fmt::format("{}: its recipe is invalid; run the shard's command with --force", path.string()));
}

std::string short_text(const nlohmann::json& recipe, const std::string& key) {
    const std::string text = short_setting(key, recipe.contains(key) ? recipe[key] : nlohmann::json());
    return text.empty() ? "a long value" : text;
}

std::vector<std::string> names_of_runs(const nlohmann::json& runs, const nlohmann::json& without) {
    std::vector<std::string> names;
    for (const auto& run : runs)
        if (std::ranges::find(without, run) == without.end() && run.is_object())
            names.push_back(fmt::format("{} @ {}", run.value("policy", ""), run.value("budget", "")));
    return names;
}

/// Describes how the jobs of two shards differ: "window: 8 and 16; only a.h5 has the runs h2o @ 24".
std::string difference_of_jobs(const ShardTrace& a, const ShardTrace& b) {
    if (a.shard.of == b.shard.of && a.job_hash == b.job_hash) return "";
    std::vector<std::string> found;
    if (a.shard.of != b.shard.of) found.push_back(fmt::format("number of shards: {} and {}", a.shard.of, b.shard.of));
    nlohmann::json of_a(a.recipe), of_b(b.recipe);
    for (auto* recipe : {&of_a, &of_b}) {
        erase_keys_of_shard(*recipe);
        name_stored_amount(*recipe);
    }
    const nlohmann::json runs_of_a = of_a["runs"], runs_of_b = of_b["runs"];
    of_a.erase("runs");
    of_b.erase("runs");
    nlohmann::json keys = of_a;
    keys.update(of_b);
    for (const auto& [key, value] : keys.items())
        if (!of_a.contains(key) || !of_b.contains(key) || of_a[key] != of_b[key])
            found.push_back(fmt::format("{}: {} and {}", key, short_text(of_a, key), short_text(of_b, key)));
    if (runs_of_a != runs_of_b) {
        const auto only_a = names_of_runs(runs_of_a, runs_of_b), only_b = names_of_runs(runs_of_b, runs_of_a);
        if (!only_a.empty()) found.push_back(fmt::format("runs: only the first has {}", fmt::join(only_a, ", ")));
        if (!only_b.empty()) found.push_back(fmt::format("runs: only the second has {}", fmt::join(only_b, ", ")));
        if (only_a.empty() && only_b.empty()) found.emplace_back("order of the runs");
    }
    if (found.empty() && a.n_prompts_of_job != b.n_prompts_of_job)
        found.push_back(fmt::format("number of prompts: {} and {}", a.n_prompts_of_job, b.n_prompts_of_job));
    if (found.empty()) found.emplace_back("prompts: texts, questions, answers, or the date in a chat template");
    return fmt::format("{}", fmt::join(found, "; "));
}

void require_one_job(const std::vector<ShardTrace>& shards) {
    const ShardTrace& first = shards.front();
    for (const ShardTrace& shard : shards) {
        const std::string difference = difference_of_jobs(first, shard);
        if (!difference.empty())
            throw TraceError(fmt::format("{} and {} are shards of different jobs, which differ in {}",
                                         first.path.string(), shard.path.string(), difference));
    }
    for (const ShardTrace& shard : shards) {
        const auto same = std::ranges::find_if(
            shards, [&](const ShardTrace& other) { return &other != &shard && other.shard == shard.shard; });
        if (same != shards.end())
            throw TraceError(fmt::format("{} and {} are both shard {} of {}: name each shard once", shard.path.string(),
                                         same->path.string(), shard.shard.number, shard.shard.of));
    }
}

std::string state_of_missing_shard(const fs::path& file, Shard shard) {
    std::error_code error;
    const std::string name = file.string();
    if (fs::exists(file, error)) return fmt::format("name {}, too", name);
    if (fs::exists(part_folder_of(file), error))
        return fmt::format("{} is unfinished; run its command again", part_folder_of(file).string());
    return fmt::format("{} does not exist; run the command with --shard {}/{}", name, shard.number, shard.of);
}

/// @param shards in ascending order
void require_all_shards(const std::vector<ShardTrace>& shards) {
    constexpr std::size_t most_named = 3;
    const ShardTrace& first = shards.front();
    // A job with few prompts has shards without prompts, which write no trace.
    const auto n_with_prompts =
        static_cast<int>(std::min<std::size_t>(first.n_contexts_of_job, static_cast<std::size_t>(first.shard.of)));
    std::vector<std::string> missing;
    for (int number = 1; number <= n_with_prompts; ++number) {
        const Shard shard{number, first.shard.of};
        if (std::ranges::any_of(shards, [&](const ShardTrace& other) { return other.shard == shard; })) continue;
        const fs::path output = output_of_shard_file(first.path).value_or(first.path);
        missing.push_back(fmt::format("shard {} of {} is missing: {}", number, shard.of,
                                      state_of_missing_shard(file_of_shard(output, shard), shard)));
    }
    if (missing.empty()) return;
    const std::size_t n_more = missing.size() - std::min(missing.size(), most_named);
    missing.resize(missing.size() - n_more);
    throw TraceError(fmt::format("{}{}", fmt::join(missing, ". "),
                                 n_more > 0 ? fmt::format(". {} more shards are missing", n_more) : ""));
}

/// Moves the prompts out of the shards' recipes. @param shards in ascending order
nlohmann::ordered_json join_recipes(std::vector<ShardTrace>& shards) {
    const ShardTrace& first = shards.front();
    const auto refuse = [&] {
        throw DamagedTrace(
            fmt::format("{}: expected shards of one job, found other prompts or settings; run the "
                        "shards' commands with --force",
                        first.path.string()));
    };
    std::size_t n_prompts = 0;
    for (const ShardTrace& shard : shards) n_prompts += shard.numbers.size();
    if (n_prompts != first.n_prompts_of_job) refuse();
    std::vector<nlohmann::ordered_json> prompts(n_prompts);
    std::vector<std::string> digests;
    for (ShardTrace& shard : shards) {
        for (std::size_t i = 0; i < shard.numbers.size(); ++i) {
            const auto number = static_cast<std::size_t>(shard.numbers[i]);
            if (shard.numbers[i] < 0 || number >= prompts.size() || !prompts[number].is_null()) refuse();
            digests.push_back(digest_of_prompt(nlohmann::json(shard.recipe["prompts"][i])));
            prompts[number] = std::move(shard.recipe["prompts"][i]);
        }
        shard.recipe.erase("prompts");
    }
    nlohmann::ordered_json whole = first.recipe;
    for (const char* key : {recipe_keys::shard, recipe_keys::job}) whole.erase(key);
    if (hash_of_job(nlohmann::json(whole), std::move(digests)) != first.job_hash) refuse();
    nlohmann::ordered_json ordered;  // with the keys in the order of a recipe
    for (const auto& [key, value] : whole.items()) {
        if (key == "runs") ordered["prompts"] = prompts;
        ordered[key] = value;
    }
    return ordered;
}

/// Copies groups of a shard. Data sets that several groups of the shard share are copied once.
class GroupCopy {
 public:
    GroupCopy(hid_t from, hid_t to, const std::stop_token& stop) : from_(from), to_(to), stop_(stop) {}

    void copy(const std::string& source, const std::string& target) {
        const h5::Handle made = h5::create_group(to_, target);
        h5::copy_attributes(h5::open_group(from_, source).get(), made.get());
        for (const std::string& name : h5::members(from_, source)) {
            throw_if_stopped(stop_);
            const std::string from = fmt::format("{}/{}", source, name), to = fmt::format("{}/{}", target, name);
            h5::is_group(from_, from) ? copy(from, to) : copy_data_set(from, to);
        }
    }

 private:
    void copy_data_set(const std::string& source, const std::string& target) {
        const std::string action = fmt::format("copy {}", source);
        const h5::Handle links = h5::link_properties();
        const auto [known, is_new] = copied_.emplace(h5::address(from_, source), target);
        if (!is_new) {
            h5::checked(H5Lcreate_hard(to_, known->second.c_str(), to_, target.c_str(), links.get(), H5P_DEFAULT),
                        action);
            return;
        }
        require_readable_data_set(from_, source);
        h5::checked(H5Ocopy(from_, source.c_str(), to_, target.c_str(), H5P_DEFAULT, links.get()), action);
    }

    hid_t from_, to_;
    const std::stop_token& stop_;
    std::map<std::uint64_t, std::string> copied_;  ///< copies by address in the shard
};

std::string origin_of(const ResultRow& row) {
    std::string text = row.device.empty() ? "an unknown device" : row.device;
    if (!row.instructions.empty()) text += " with " + row.instructions;
    return text + (row.commit.empty() ? "" : ", commit " + row.commit);
}

class Join {
 public:
    Join(std::vector<ShardTrace>& shards, OutputFile& joined, const JoinOptions& options, JoinedShards& result)
        : shards_(shards),
          joined_(joined),
          options_(options),
          result_(result),
          task_(table_name(shards.front().recipe)),
          n_runs_(shards.front().recipe.at("runs").size()) {}

    void copy_prompts() {
        h5::create_group(joined_.id(), "/" + std::string(schema::root::prompts_group));
        for (const ShardTrace& shard : shards_)
            with_shard(shard, [&](Source& source) {
                const hid_t file = source.open(shard.path).get();
                GroupCopy copy(file, joined_.id(), options_.stop);
                if (&shard == &shards_.front() && source.model) copy.copy(source.model->group, source.model->group);
                require_count(shard, "prompts", source.prompts.empty() ? 0 : shard.numbers.size(),
                              source.prompts.size());
                for (std::size_t i = 0; i < source.prompts.size(); ++i) {
                    const std::string target = fmt::format("/{}/{}", schema::root::prompts_group, shard.numbers[i]);
                    copy.copy(source.prompts[i].group, target);
                    renumber_context(shard, target);
                    joined_.require_healthy();
                    advance(1);
                }
                if (source.prompts.empty()) advance(shard.numbers.size());
            });
    }

    void copy_rows() {
        DataHash hash;
        for (const ShardTrace& shard : shards_)
            for (std::size_t block = 0; block < shard.batches.size(); block += blocks_at_once()) {
                const auto rows = read_rows(shard, block, std::min(blocks_at_once(), shard.batches.size() - block));
                hash.add(rows);
                for (const ResultRow& row : rows) result_.origins[origin_of(row)].insert(shard.shard.number);
            }
        const std::string data_hash = hash.text();
        const std::vector<Block> blocks = blocks_in_order();
        const std::string path = "/results/" + task_, action = fmt::format("write {}", path);
        h5::Handle table = create_results(joined_.id(), path, blocks.size() * n_runs_);
        for (std::size_t first = 0; first < blocks.size(); first += blocks_at_once()) {
            auto rows = read_rows(std::span(blocks).subspan(first, std::min(blocks_at_once(), blocks.size() - first)));
            for (ResultRow& row : rows) row.data_hash = data_hash;
            store_rows(table.get(), first * n_runs_, rows, action);
            joined_.require_healthy();
        }
        table.close(action);
    }

 private:
    /// The rows of a prompt or sample.
    struct Block {
        std::int64_t batch;
        std::size_t shard;     ///< index
        std::size_t in_shard;  ///< place in the shard's table
    };

    std::size_t blocks_at_once() const { return std::max<std::size_t>(rows_at_once / n_runs_, 1); }

    void advance(std::size_t n) {
        n_done_ += static_cast<std::int64_t>(n);
        if (options_.on_prompts) options_.on_prompts(n_done_, result_.n_prompts);
    }

    template <class Action>
    void with_shard(const ShardTrace& shard, Action action) {
        throw_if_stopped(options_.stop);
        try {
            Source source(shard.path);
            action(source);
        } catch (const h5::Failure& failure) {
            joined_.require_healthy();
            h5::throw_unreadable(shard.path.string(), failure);
        }
    }

    static void require_count(const ShardTrace& shard, const char* what, std::size_t expected, std::size_t found) {
        if (expected != found)
            throw DamagedTrace(fmt::format("{}: expected {} {}, found {}; run the shard's command with --force",
                                           shard.path.string(), expected, what, found));
    }

    void renumber_context(const ShardTrace& shard, const std::string& group) const {
        const h5::Handle prompt = h5::open_group(joined_.id(), group);
        const auto context = h5::read_attribute(prompt.get(), "context_of");
        if (!context || context->integers.empty()) return;
        const auto number = static_cast<std::size_t>(context->integers.front());
        if (number >= shard.numbers.size())
            throw DamagedTrace(fmt::format("{}: a prompt has the context of prompt {}, which is missing",
                                           shard.path.string(), number));
        h5::write_attribute(prompt.get(), "context_of", std::int64_t{shard.numbers[number]});
    }

    std::vector<Block> blocks_in_order() const {
        std::vector<Block> blocks;
        for (std::size_t shard = 0; shard < shards_.size(); ++shard)
            for (std::size_t i = 0; i < shards_[shard].batches.size(); ++i)
                blocks.push_back({shards_[shard].batches[i], shard, i});
        std::ranges::sort(blocks, {}, &Block::batch);
        return blocks;
    }

    std::vector<ResultRow> read_rows(const ShardTrace& shard, std::size_t first_block, std::size_t n_blocks) {
        throw_if_stopped(options_.stop);
        const std::string where = shard.path.string();
        return h5::with_place_in_errors(where, [&] {
            const h5::Handle file = open_part(shard.path);
            const h5::Handle table = h5::open_data_set(file.get(), "/results/" + task_);
            const auto shape = h5::data_set_info(table.get()).shape;
            require_count(shard, "rows of results", shard.batches.size() * n_runs_, shape.empty() ? 0 : shape[0]);
            return load_results(table.get(), where, RowRange{first_block * n_runs_, n_blocks * n_runs_});
        });
    }

    /// Reads the rows of consecutive blocks, which are also consecutive in each shard.
    std::vector<ResultRow> read_rows(std::span<const Block> blocks) {
        std::vector<ResultRow> rows(blocks.size() * n_runs_);
        for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
            std::vector<std::size_t> places;  // of the shard's blocks
            for (std::size_t i = 0; i < blocks.size(); ++i)
                if (blocks[i].shard == shard) places.push_back(i);
            if (places.empty()) continue;
            auto found = read_rows(shards_[shard], blocks[places.front()].in_shard, places.size());
            for (std::size_t i = 0; i < places.size(); ++i)
                std::move(found.begin() + static_cast<std::ptrdiff_t>(i * n_runs_),
                          found.begin() + static_cast<std::ptrdiff_t>((i + 1) * n_runs_),
                          rows.begin() + static_cast<std::ptrdiff_t>(places[i] * n_runs_));
        }
        return rows;
    }

    std::vector<ShardTrace>& shards_;
    OutputFile& joined_;
    const JoinOptions& options_;
    JoinedShards& result_;
    std::string task_;
    std::size_t n_runs_;
    std::int64_t n_done_ = 0;
};

/// The folder `<output>.part`, which excludes other writers. Removes the folder unless the folder had contents.
class OutputFolder {
 public:
    OutputFolder(const fs::path& output, bool force) : path_(part_folder_of(output)) {
        std::error_code error;
        fs::create_directory(path_, error);
        if (error) throw WriteFailed(fmt::format("cannot create {}: {}", path_.string(), error.message()));
        lock_ = FolderLock(path_);
        const std::string foreign = foreign_entry(path_);
        had_parts_ = !foreign.empty() || !list_parts(path_).empty();
        if (!foreign.empty())
            throw OutputExists(fmt::format("{} contains {}, which kvscope did not make; choose another output",
                                           path_.string(), foreign));
        if (had_parts_ && !force)
            throw ReplaceableOutputExists(
                fmt::format("{} contains an unfinished trace of the same prompts and runs; "
                            "repeat its command, or choose another output",
                            path_.string()));
    }
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;
    ~OutputFolder() {
        if (had_parts_) return;
        try {
            remove_folder(path_);
        } catch (const std::runtime_error&) {
            // An empty folder is harmless: the next command removes it.
        }
    }

    [[nodiscard]] fs::path file() const { return path_ / "joined.h5.tmp"; }
    void replace_contents() { had_parts_ = false; }

 private:
    fs::path path_;
    FolderLock lock_;
    bool had_parts_ = false;
};

std::vector<ShardTrace> read_shards(const std::vector<fs::path>& paths, const fs::path& output) {
    std::vector<ShardTrace> shards;
    const h5::Guard guard;
    for (const fs::path& path : paths) {
        std::error_code error;
        if (fs::equivalent(path, output, error))
            throw TraceError(fmt::format("{} is a shard: choose another output", path.string()));
        shards.push_back(read_shard(path));
    }
    if (shards.empty()) throw std::invalid_argument("expected the shards of a job, found none");
    require_one_job(shards);
    std::ranges::sort(shards, {}, [](const ShardTrace& shard) { return shard.shard.number; });
    require_all_shards(shards);
    return shards;
}

}  // namespace

JoinedShards join_shards(const std::vector<fs::path>& paths, const fs::path& output, const JoinOptions& options) {
    const fs::path path = resolve_output_links(output);
    std::vector<ShardTrace> shards = read_shards(paths, path);
    JoinedShards result{.n_prompts = static_cast<std::int64_t>(shards.front().n_prompts_of_job),
                        .has_samples = is_of_task(shards.front().recipe),
                        .n_shards = static_cast<int>(shards.size())};
    RootAttributes root{options.generator, shards.front().created_utc, join_recipes(shards).dump(), true};
    const WriterOptions as_writer{.force = options.force, .generator = options.generator};
    result.was_complete = check_output_state(path, root.recipe_json, as_writer) == OutputState::complete;
    if (result.was_complete) {
        for (const fs::path& shard : paths)
            if (fs::last_write_time(shard) > fs::last_write_time(path))
                throw OutputExists(
                    fmt::format("{} is newer than {}, which contains its earlier numbers; --force joins again",
                                shard.string(), path.string()));
        return result;
    }
    OutputFolder folder(path, options.force);
    std::unique_ptr<OutputFile> joined;
    try {
        const h5::Guard guard;
        joined = std::make_unique<OutputFile>(folder.file());
        Join join(shards, *joined, options, result);
        join.copy_prompts();
        join.copy_rows();
        store_root(joined->id(), root);
        joined->close();
    } catch (const h5::Failure& failure) {
        throw WriteFailed(fmt::format("cannot write {}: {}", path.string(), failure.what()));
    }
    throw_if_stopped(options.stop);
    joined->commit(path);
    folder.replace_contents();
    return result;
}

}  // namespace kvscope::trace
