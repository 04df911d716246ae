#include "trace/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <type_traits>

#include "trace/added_run.h"
#include "trace/extents.h"
#include "trace/fields.h"
#include "trace/hdf5.h"
#include "trace/load.h"
#include "trace/source.h"

namespace kvscope::trace {

namespace {

struct Prompt {
    PromptAttributes attributes;
    std::vector<RunAttributes> runs;
};

std::string place_name(const GroupPlace& place) { return fmt::format("{}: {}", place.file.string(), place.group); }

// The index, not the number, of the group with that number.
template <class Places>
std::optional<std::size_t> index_of(const Places& places, int number) {
    const auto found = std::find_if(places.begin(), places.end(), [&](const auto& p) { return p.number == number; });
    if (found == places.end()) return std::nullopt;
    return static_cast<std::size_t>(found - places.begin());
}

// Adds to HDF5's message where it happened.
template <class Action>
auto guarded(const GroupPlace& place, Action action) -> decltype(action()) {
    try {
        return action();
    } catch (const h5::Failure& failure) {
        throw DamagedTrace(fmt::format("{}: {}", place_name(place), failure.what()));
    }
}

// What was read of the trace so far, shared by a reader and those that with_run() made of it.
struct Files {
    mutable Source source;
    std::optional<ModelAttributes> model;
    std::vector<Prompt> prompts;

    template <class Load>
    auto load(const GroupPlace& place, Load load_attributes) {
        return guarded(place, [&] {
            const h5::Handle group = h5::open_group(source.open(place.file).get(), place.group);
            return load_attributes(group.get(), place_name(place));
        });
    }

    explicit Files(const std::filesystem::path& path) : source(path) {
        if (source.model) model = load(*source.model, load_model);
        for (const PromptPlace& place : source.prompts) {
            Prompt& prompt = prompts.emplace_back();
            prompt.attributes = load(place, load_prompt);
            for (const GroupPlace& run : place.runs) prompt.runs.push_back(load(run, load_run));
        }
        if (!source.is_folder && source.root.complete && !model) {
            throw DamagedTrace(fmt::format("{}: the group /model is missing", path.string()));
        }
    }

    std::shared_ptr<const Kept> cached_kept(int prompt, int run) const {
        const std::lock_guard lock(kept_mutex_);
        const auto found = kept_.find({prompt, run});
        return found == kept_.end() ? nullptr : found->second;
    }
    void cache_kept(int prompt, int run, std::shared_ptr<const Kept> kept) const {
        const std::lock_guard lock(kept_mutex_);
        kept_[{prompt, run}] = std::move(kept);
    }

 private:
    // Apart from HDF5's, so that what is known is there while another thread reads.
    mutable std::mutex kept_mutex_;
    mutable std::map<std::pair<int, int>, std::shared_ptr<const Kept>> kept_;
};

// The last of several readers closes the files, in whichever thread.
struct CloseFiles {
    void operator()(const Files* files) const {
        const h5::Guard guard;
        delete files;
    }
};

// A prompt's runs, those in no file last.
struct Extended {
    std::vector<RunAttributes> runs;
    std::vector<std::shared_ptr<const AddedRun>> added;
};

}  // namespace

struct Reader::Impl {
    std::shared_ptr<const Files> files;
    std::map<int, std::shared_ptr<const Extended>> extended = {};  // prompts with added runs

    const Prompt& prompt(int i) const {
        const auto& prompts = files->prompts;
        if (i < 0 || static_cast<std::size_t>(i) >= prompts.size()) {
            throw std::out_of_range(fmt::format("{}: expected one of {} prompts, found index {}",
                                                files->source.path.string(), prompts.size(), i));
        }
        return prompts[static_cast<std::size_t>(i)];
    }
    const std::vector<RunAttributes>& runs(int i) const {
        const auto found = extended.find(i);
        return found == extended.end() ? prompt(i).runs : found->second->runs;
    }
    const RunAttributes& run(int i, int j) const {
        const std::vector<RunAttributes>& all = runs(i);
        if (j < 0 || static_cast<std::size_t>(j) >= all.size()) {
            throw std::out_of_range(fmt::format("{}: expected one of {} runs of prompt {}, found index {}",
                                                files->source.path.string(), all.size(), i, j));
        }
        return all[static_cast<std::size_t>(j)];
    }
    // Null for a run in a file and for places of no run.
    const AddedRun* added(Place place) const {
        if (place.prompt < 0 || place.run < 0) return nullptr;
        run(place.prompt, place.run);
        const std::size_t in_file = prompt(place.prompt).runs.size();
        const auto at = static_cast<std::size_t>(place.run);
        return at < in_file ? nullptr : extended.at(place.prompt)->added[at - in_file].get();
    }
    const ModelAttributes& require_model() const {
        if (!files->model) {
            throw DamagedTrace(fmt::format("{}: the model is not there yet", files->source.path.string()));
        }
        return *files->model;
    }

    // Of a group that is in a file.
    const GroupPlace& group_place(Place place) const {
        if (place.prompt < 0) {
            require_model();
            return *files->source.model;
        }
        prompt(place.prompt);
        const PromptPlace& at = files->source.prompts[static_cast<std::size_t>(place.prompt)];
        if (place.run < 0) return at;
        run(place.prompt, place.run);
        return at.runs[static_cast<std::size_t>(place.run)];
    }

    // Where a data set lies: in its group, or in that of the prompt whose context this one shares,
    // which is where an unfinished trace has it. Nothing if it is in neither.
    const GroupPlace* find(Place place, const schema::DataSet& data_set) const {
        const GroupPlace& own = group_place(place);
        const std::string path = own.group + "/" + std::string(data_set.path);
        if (guarded(own, [&] { return h5::exists(files->source.open(own.file).get(), path); })) return &own;
        if (place.prompt < 0 || !prompt(place.prompt).attributes.context_of) return nullptr;

        const auto shared = [&](const auto& list) {
            return std::find(std::begin(list), std::end(list), &data_set) != std::end(list);
        };
        const auto source_prompt = index_of(files->source.prompts, *prompt(place.prompt).attributes.context_of);
        if (!source_prompt || static_cast<int>(*source_prompt) == place.prompt) return nullptr;
        Place there = Place::of_prompt(static_cast<int>(*source_prompt));
        if (place.run < 0) {
            if (!shared(schema::prompt::shared_data_sets)) return nullptr;
        } else {
            if (!shared(schema::run::shared_data_sets)) return nullptr;
            const auto run_index = index_of(files->source.prompts[*source_prompt].runs, own.number);
            if (!run_index) return nullptr;
            there.run = static_cast<int>(*run_index);
        }
        const GroupPlace& other = group_place(there);
        const std::string other_path = other.group + "/" + std::string(data_set.path);
        return guarded(other, [&] { return h5::exists(files->source.open(other.file).get(), other_path); }) ? &other
                                                                                                            : nullptr;
    }

    // Opens, checks rank and the lengths that the attributes fix, then lets `action` read.
    template <class Action>
    auto with_data_set(Place place, const schema::DataSet& data_set, Action action) const {
        const h5::Guard guard;
        const GroupPlace* at = find(place, data_set);
        if (at == nullptr) {
            throw DamagedTrace(
                fmt::format("{}/{}: the data set is missing", place_name(group_place(place)), data_set.path));
        }
        const GroupPlace here{at->file, fmt::format("{}/{}", at->group, data_set.path)};
        return guarded(here, [&] {
            const h5::Handle open = h5::open_data_set(files->source.open(here.file).get(), here.group);
            require_shape(place, data_set, h5::info(open.get()).shape, place_name(here));
            return action(open.get());
        });
    }

    Extents extents(Place place) const {
        const ModelAttributes& m = require_model();
        if (place.prompt < 0) return Extents(m);
        const PromptAttributes& p = prompt(place.prompt).attributes;
        return place.run < 0 ? Extents(m, p) : Extents(m, p, run(place.prompt, place.run));
    }

    void require_shape(Place place, const schema::DataSet& data_set, const std::vector<std::size_t>& found,
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

    void check_kept(const Kept& found, std::int64_t visible_tokens, const std::string& where) const {
        const auto& offsets = found.offsets;
        if (offsets.empty() || offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end()) ||
            offsets.back() != found.indices.size()) {
            throw DamagedTrace(
                fmt::format("{}/kept_offsets: expected to rise from 0 to the {} elements of kept_indices", where,
                            found.indices.size()));
        }
        for (const std::uint32_t position : found.indices) {
            if (position >= visible_tokens) {
                throw DamagedTrace(fmt::format("{}/kept_indices: expected positions below {}, found {}", where,
                                               visible_tokens, position));
            }
        }
    }
};

Reader::Reader(const std::filesystem::path& path) {
    const h5::Guard guard;
    impl_ = std::make_unique<Impl>(Impl{std::shared_ptr<const Files>(new Files(path), CloseFiles{})});
}
Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Reader Reader::with_run(int prompt, RunRecord run) const {
    const PromptAttributes& attributes = this->prompt(prompt);
    const auto before = impl_->extended.find(prompt);
    auto after = std::make_shared<Extended>();
    after->runs = runs(prompt);
    after->runs.push_back(run);
    if (before != impl_->extended.end()) after->added = before->second->added;
    after->added.push_back(std::make_shared<const AddedRun>(std::move(run), model(), attributes));
    auto impl = std::make_unique<Impl>(*impl_);
    impl->extended[prompt] = std::move(after);
    return Reader(std::move(impl));
}

bool Reader::is_in_file(int prompt, int run) const {
    impl_->run(prompt, run);
    return impl_->added(Place::of_run(prompt, run)) == nullptr;
}

const std::filesystem::path& Reader::path() const { return impl_->files->source.path; }
const std::string& Reader::version() const { return impl_->files->source.version; }
const std::string& Reader::generator() const { return impl_->files->source.root.generator; }
const std::string& Reader::created_utc() const { return impl_->files->source.root.created_utc; }
const std::string& Reader::recipe_json() const { return impl_->files->source.root.recipe_json; }
bool Reader::complete() const { return impl_->files->source.root.complete && !impl_->files->source.is_folder; }

bool Reader::has_model() const { return impl_->files->model.has_value(); }
const ModelAttributes& Reader::model() const { return impl_->require_model(); }
int Reader::n_prompts() const { return static_cast<int>(impl_->files->prompts.size()); }
const PromptAttributes& Reader::prompt(int prompt) const { return impl_->prompt(prompt).attributes; }
int Reader::prompt_number(int prompt) const { return impl_->group_place(Place::of_prompt(prompt)).number; }
int Reader::run_number(int prompt, int run) const {
    if (is_in_file(prompt, run)) return impl_->group_place(Place::of_run(prompt, run)).number;
    const auto in_file = static_cast<int>(impl_->prompt(prompt).runs.size());
    const int next = in_file == 0 ? 0 : run_number(prompt, in_file - 1) + 1;
    return next + run - in_file;
}
int Reader::n_runs(int prompt) const { return static_cast<int>(runs(prompt).size()); }
const RunAttributes& Reader::run(int prompt, int run) const { return impl_->run(prompt, run); }
const std::vector<RunAttributes>& Reader::runs(int prompt) const { return impl_->runs(prompt); }

std::optional<int> Reader::full_run(int prompt) const {
    const auto& all = runs(prompt);
    const auto found = std::find_if(all.begin(), all.end(), [](const RunAttributes& r) { return r.policy == "full"; });
    if (found == all.end()) return std::nullopt;
    return static_cast<int>(found - all.begin());
}

bool Reader::has(Place place, const schema::DataSet& data_set) const {
    if (const AddedRun* added = impl_->added(place)) return added->has(data_set);
    const h5::Guard guard;
    return impl_->find(place, data_set) != nullptr;
}

std::vector<std::size_t> Reader::shape(Place place, const schema::DataSet& data_set) const {
    if (const AddedRun* added = impl_->added(place)) return added->shape(data_set);
    return impl_->with_data_set(place, data_set, [](hid_t open) { return h5::info(open).shape; });
}

namespace {

Block block_of_layer(std::vector<std::size_t> shape, std::size_t layer) {
    Block block;
    block.count = std::move(shape);
    block.first.assign(block.count.size(), 0);
    block.first.at(0) = layer;
    block.count.at(0) = 1;
    return block;
}

}  // namespace

template <class T>
std::vector<T> Reader::read(Place place, const schema::DataSet& data_set) const {
    if (const AddedRun* added = impl_->added(place)) return added->read<T>(data_set);
    return impl_->with_data_set(place, data_set, [](hid_t open) { return h5::read<T>(open); });
}

template <class T>
std::vector<T> Reader::read(Place place, const schema::DataSet& data_set, const Block& block) const {
    if (const AddedRun* added = impl_->added(place)) return added->read<T>(data_set, &block);
    return impl_->with_data_set(place, data_set, [&](hid_t open) { return h5::read<T>(open, &block); });
}

template <class T>
std::vector<T> Reader::read_layer(Place place, const schema::DataSet& data_set, std::size_t layer) const {
    if (const AddedRun* added = impl_->added(place)) {
        const Block block = block_of_layer(added->shape(data_set), layer);
        return added->read<T>(data_set, &block);
    }
    return impl_->with_data_set(place, data_set, [&](hid_t open) {
        const Block block = block_of_layer(h5::info(open).shape, layer);
        return h5::read<T>(open, &block);
    });
}

#define KVSCOPE_INSTANTIATE(T)                                                               \
    template std::vector<T> Reader::read(Place, const schema::DataSet&) const;               \
    template std::vector<T> Reader::read(Place, const schema::DataSet&, const Block&) const; \
    template std::vector<T> Reader::read_layer(Place, const schema::DataSet&, std::size_t) const;
KVSCOPE_INSTANTIATE(float)
KVSCOPE_INSTANTIATE(double)
KVSCOPE_INSTANTIATE(std::int32_t)
KVSCOPE_INSTANTIATE(std::uint8_t)
KVSCOPE_INSTANTIATE(std::uint16_t)
KVSCOPE_INSTANTIATE(std::uint32_t)
KVSCOPE_INSTANTIATE(std::uint64_t)
#undef KVSCOPE_INSTANTIATE

std::vector<std::int32_t> Reader::token_ids(int prompt) const {
    return read<std::int32_t>(Place::of_prompt(prompt), schema::prompt::token_ids);
}

std::vector<std::string> Reader::token_text(int prompt) const {
    return impl_->with_data_set(Place::of_prompt(prompt), schema::prompt::token_text,
                                [](hid_t open) { return h5::read_texts(open); });
}

std::vector<float> Reader::window_attention(int prompt, std::size_t layer) const {
    return read_layer<float>(Place::of_prompt(prompt), schema::prompt::window_attention, layer);
}

std::vector<double> Reader::scores(int prompt, int run, std::size_t layer) const {
    const Place place = Place::of_run(prompt, run);
    if (!has(place, schema::run::scores)) return {};
    return read_layer<double>(place, schema::run::scores, layer);
}

namespace {

// Whether every row holds all n positions. Then they need not be read, which takes long of a long prompt's full cache.
bool keeps_all(const std::vector<std::uint64_t>& offsets, std::size_t n) {
    for (std::size_t row = 0; row < offsets.size(); ++row) {
        if (offsets[row] != row * n) return false;
    }
    return n > 0 && !offsets.empty();
}

}  // namespace

std::shared_ptr<const Kept> Reader::kept(int prompt, int run) const {
    const Place place = Place::of_run(prompt, run);
    if (const AddedRun* added = impl_->added(place)) return added->kept();
    if (auto known = impl_->files->cached_kept(prompt, run)) return known;
    const h5::Guard guard;
    // Another thread may have read it while this one waited.
    if (auto known = impl_->files->cached_kept(prompt, run)) return known;
    auto out = std::make_shared<Kept>();
    out->n_layers = static_cast<std::size_t>(model().n_layers);
    out->n_rows = n_rows(prompt, run);
    out->offsets = read<std::uint64_t>(place, schema::run::kept_offsets);
    const auto n = static_cast<std::size_t>(this->prompt(prompt).visible_tokens());
    out->indices = impl_->with_data_set(place, schema::run::kept_indices, [&](hid_t open) {
        const h5::DataSetInfo found = h5::info(open);
        if (!keeps_all(out->offsets, n) || found.shape[0] != out->offsets.back()) return h5::read<std::uint32_t>(open);
        h5::require_plausible(found);
        std::vector<std::uint32_t> all(found.shape[0]);
        for (std::size_t row = 0; row < all.size(); row += n) std::iota(&all[row], &all[row] + n, 0U);
        return all;
    });
    impl_->check_kept(*out, this->prompt(prompt).visible_tokens(), place_name(impl_->group_place(place)));
    impl_->files->cache_kept(prompt, run, out);
    return out;
}

std::size_t Reader::n_rows(int prompt, int run) const { return impl_->extents(Place::of_run(prompt, run)).rows(); }

namespace {

// Fills each vector of a record from the data set of its name, if that is there.
struct FillFrom {
    const Reader& reader;
    Place place;

    template <class T>
    void operator()(const schema::DataSet& data_set, std::vector<T>& values) const {
        if (reader.has(place, data_set)) values = reader.read<T>(place, data_set);
    }
    void operator()(const schema::DataSet& data_set, std::vector<std::string>& values) const {
        if (reader.has(place, data_set)) values = reader.token_text(place.prompt);
    }
};

}  // namespace

ModelRecord Reader::model_record() const {
    ModelRecord out;
    static_cast<ModelAttributes&>(out) = model();
    for_each_model_data_set(out, FillFrom{*this, Place::of_model()});
    return out;
}

PromptRecord Reader::prompt_record(int prompt) const {
    PromptRecord out;
    static_cast<PromptAttributes&>(out) = this->prompt(prompt);
    for_each_prompt_data_set(out, FillFrom{*this, Place::of_prompt(prompt)});
    return out;
}

RunRecord Reader::run_record(int prompt, int run) const {
    const Place place = Place::of_run(prompt, run);
    if (const AddedRun* added = impl_->added(place)) return added->record();
    RunRecord out;
    static_cast<RunAttributes&>(out) = this->run(prompt, run);
    const FillFrom fill{*this, place};
    const bool doubles = has(place, schema::run::scores) &&
                         impl_->with_data_set(place, schema::run::scores,
                                              [](hid_t open) { return h5::info(open).element == schema::Type::f64; });
    for_each_run_data_set(out, [&](const schema::DataSet& data_set, auto& values) {
        using T = typename std::remove_reference_t<decltype(values)>::value_type;
        if (&data_set == &schema::run::scores && std::is_same_v<T, double> != doubles) return;
        fill(data_set, values);
    });
    return out;
}

std::vector<std::string> Reader::result_tasks() const {
    std::vector<std::string> out;
    for (const auto& [task, tables] : impl_->files->source.results) out.push_back(task);
    return out;
}

std::vector<ResultRow> Reader::results(std::string_view task) const {
    const h5::Guard guard;
    const auto found = impl_->files->source.results.find(std::string(task));
    if (found == impl_->files->source.results.end()) {
        throw std::out_of_range(fmt::format("{}: no results of the task \"{}\"", path().string(), task));
    }
    std::vector<ResultRow> out;
    for (const GroupPlace& place : found->second) {
        auto rows = guarded(place, [&] {
            const h5::Handle table = h5::open_data_set(impl_->files->source.open(place.file).get(), place.group);
            return load_results(table.get(), place_name(place));
        });
        out.insert(out.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
    }
    return out;
}

}  // namespace kvscope::trace
