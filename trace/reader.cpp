#include "trace/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "trace/in_memory_run.h"
#include "trace/open_trace_files.h"
#include "trace/records/extents.h"
#include "trace/records/record_fields.h"

namespace kvscope::trace {

namespace {

struct Extended {
    std::vector<RunAttributes> runs;
    std::vector<std::shared_ptr<const InMemoryRun>> added;
};

}  // namespace

struct Reader::Impl {
    std::shared_ptr<const OpenTraceFiles> files;
    std::stop_token stop;
    std::map<int, std::shared_ptr<const Extended>> extended = {};  ///< prompts with added or renamed runs

    const std::vector<RunAttributes>& runs(int prompt) const {
        const auto found = extended.find(prompt);
        return found == extended.end() ? files->prompt(prompt).runs : found->second->runs;
    }
    const RunAttributes& run(int prompt, int run) const {
        const std::vector<RunAttributes>& all = runs(prompt);
        if (run < 0 || static_cast<std::size_t>(run) >= all.size()) {
            throw std::out_of_range(
                fmt::format("{}: expected an index below {}, the number of runs of prompt {}, found {}",
                            files->source().path.string(), all.size(), prompt, run));
        }
        return all[static_cast<std::size_t>(run)];
    }
    const InMemoryRun* added(Place place) const {
        if (place.prompt < 0 || place.run < 0) return nullptr;
        run(place.prompt, place.run);
        const std::size_t in_file = files->prompt(place.prompt).runs.size();
        const auto at = static_cast<std::size_t>(place.run);
        return at < in_file ? nullptr : extended.at(place.prompt)->added[at - in_file].get();
    }
};

Reader::Reader(const std::filesystem::path& path, std::stop_token stop)
    : impl_(new Impl{OpenTraceFiles::open(path, stop), std::move(stop)}) {}
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
    after->added.push_back(std::make_shared<const InMemoryRun>(std::move(run), model(), attributes));
    auto impl = std::make_unique<Impl>(*impl_);
    impl->extended[prompt] = std::move(after);
    return Reader(std::move(impl));
}

Reader Reader::with_labels(const std::map<std::pair<int, int>, std::string>& labels) const {
    for (const auto& [place, label] : labels) impl_->run(place.first, place.second);
    auto impl = std::make_unique<Impl>(*impl_);
    for (int prompt = 0; prompt < n_prompts(); ++prompt) {
        const auto before = impl_->extended.find(prompt);
        const auto of_prompt = labels.lower_bound({prompt, 0});
        if (before == impl_->extended.end() && (of_prompt == labels.end() || of_prompt->first.first != prompt))
            continue;
        auto after = std::make_shared<Extended>();
        after->runs = runs(prompt);
        if (before != impl_->extended.end()) after->added = before->second->added;
        for (int run = 0; run < n_runs(prompt); ++run) {
            const auto label = labels.find({prompt, run});
            after->runs[static_cast<std::size_t>(run)].given_label = label == labels.end() ? "" : label->second;
        }
        impl->extended[prompt] = std::move(after);
    }
    return Reader(std::move(impl));
}

Reader Reader::with_stop(std::stop_token stop) const {
    auto impl = std::make_unique<Impl>(*impl_);
    impl->stop = std::move(stop);
    return Reader(std::move(impl));
}

const std::stop_token& Reader::stop_token() const { return impl_->stop; }

bool Reader::is_in_file(int prompt, int run) const {
    impl_->run(prompt, run);
    return impl_->added(Place::of_run(prompt, run)) == nullptr;
}

const std::filesystem::path& Reader::path() const { return impl_->files->source().path; }
const std::string& Reader::version() const { return impl_->files->source().version; }
const std::string& Reader::generator() const { return impl_->files->source().root.generator; }
const std::string& Reader::created_utc() const { return impl_->files->source().root.created_utc; }
const std::string& Reader::recipe_json() const { return impl_->files->source().root.recipe_json; }
bool Reader::complete() const { return impl_->files->source().root.complete && !impl_->files->source().is_folder; }

bool Reader::has_model() const { return impl_->files->has_model(); }
const ModelAttributes& Reader::model() const { return impl_->files->model(); }
int Reader::n_prompts() const { return impl_->files->n_prompts(); }
const PromptAttributes& Reader::prompt(int prompt) const { return impl_->files->prompt(prompt).attributes; }
int Reader::prompt_number(int prompt) const { return impl_->files->group(Place::of_prompt(prompt)).number; }
int Reader::run_number(int prompt, int run) const {
    if (is_in_file(prompt, run)) return impl_->files->group(Place::of_run(prompt, run)).number;
    const auto in_file = static_cast<int>(impl_->files->prompt(prompt).runs.size());
    const int next = in_file == 0 ? 0 : run_number(prompt, in_file - 1) + 1;
    return next + run - in_file;
}
int Reader::n_runs(int prompt) const { return static_cast<int>(runs(prompt).size()); }
const RunAttributes& Reader::run(int prompt, int run) const { return impl_->run(prompt, run); }
const std::vector<RunAttributes>& Reader::runs(int prompt) const { return impl_->runs(prompt); }

std::optional<int> Reader::full_run(int prompt) const {
    const auto& all = runs(prompt);
    const auto found = std::find_if(all.begin(), all.end(), [](const RunAttributes& r) { return r.is_full(); });
    if (found == all.end()) return std::nullopt;
    return static_cast<int>(found - all.begin());
}

bool Reader::has(Place place, const schema::DataSet& data_set) const {
    if (const InMemoryRun* added = impl_->added(place)) return added->has(data_set);
    return impl_->files->has(place, data_set, impl_->stop);
}

std::vector<std::size_t> Reader::shape(Place place, const schema::DataSet& data_set) const {
    if (const InMemoryRun* added = impl_->added(place)) return added->shape(data_set);
    return impl_->files->with_data_set(place, data_set, impl_->stop,
                                       [](hid_t open) { return h5::data_set_info(open).shape; });
}

std::int64_t Reader::answer_length(int prompt, int run) const {
    const Place place = Place::of_run(prompt, run);
    return has(place, schema::run::output_ids) ? static_cast<std::int64_t>(shape(place, schema::run::output_ids).at(0))
                                               : 0;
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

/// Returns the number of layers per read of a large data set, or 0 if one read suffices.
std::size_t layers_in_a_piece(const std::vector<std::size_t>& shape, std::size_t element_bytes) {
    constexpr std::size_t most_bytes = std::size_t{1} << 19;
    constexpr std::size_t largest_layer = std::size_t{1} << 40;  // larger layers mean a damaged shape
    if (shape.size() < 2 || shape[0] < 2) return 0;
    std::size_t bytes_a_layer = element_bytes;
    for (std::size_t i = 1; i < shape.size() && bytes_a_layer <= largest_layer; ++i) bytes_a_layer *= shape[i];
    if (bytes_a_layer == 0 || bytes_a_layer > largest_layer || bytes_a_layer * shape[0] <= most_bytes) return 0;
    return std::max<std::size_t>(most_bytes / bytes_a_layer, 1);
}

}  // namespace

template <class T>
std::vector<T> Reader::read(Place place, const schema::DataSet& data_set) const {
    if (const InMemoryRun* added = impl_->added(place)) return added->read<T>(data_set);
    const std::vector<std::size_t> lengths = shape(place, data_set);
    const std::size_t layers_at_once = layers_in_a_piece(lengths, sizeof(T));
    if (layers_at_once == 0)
        return impl_->files->with_data_set(place, data_set, impl_->stop,
                                           [](hid_t open) { return h5::read_data_set<T>(open); });
    // Reads in pieces, so that other threads can read between two pieces.
    std::vector<T> all;
    for (std::size_t first = 0; first < lengths[0]; first += layers_at_once) {
        Block block{std::vector<std::size_t>(lengths.size(), 0), lengths};
        block.first[0] = first;
        block.count[0] = std::min(layers_at_once, lengths[0] - first);
        const auto piece = read<T>(place, data_set, block);
        if (first == 0) all.reserve(piece.size() / block.count[0] * lengths[0]);
        all.insert(all.end(), piece.begin(), piece.end());
    }
    return all;
}

template <class T>
std::vector<T> Reader::read(Place place, const schema::DataSet& data_set, const Block& block) const {
    if (const InMemoryRun* added = impl_->added(place)) return added->read<T>(data_set, &block);
    return impl_->files->with_data_set(place, data_set, impl_->stop,
                                       [&](hid_t open) { return h5::read_data_set<T>(open, &block); });
}

template <class T>
std::vector<T> Reader::read_layer(Place place, const schema::DataSet& data_set, std::size_t layer) const {
    if (const InMemoryRun* added = impl_->added(place)) {
        const Block block = block_of_layer(added->shape(data_set), layer);
        return added->read<T>(data_set, &block);
    }
    return impl_->files->with_data_set(place, data_set, impl_->stop, [&](hid_t open) {
        const Block block = block_of_layer(h5::data_set_info(open).shape, layer);
        return h5::read_data_set<T>(open, &block);
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
    return impl_->files->with_data_set(Place::of_prompt(prompt), schema::prompt::token_text, impl_->stop,
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

std::shared_ptr<const Kept> Reader::kept(int prompt, int run) const {
    const Place place = Place::of_run(prompt, run);
    if (const InMemoryRun* added = impl_->added(place)) return added->kept();
    return impl_->files->kept(prompt, run, impl_->stop);
}

std::shared_ptr<const Kept> Reader::kept_for_now(int prompt, int run) const {
    if (!is_in_file(prompt, run)) return kept(prompt, run);
    const auto known = impl_->files->cached_kept(prompt, run);
    return known ? known : impl_->files->read_kept(prompt, run, impl_->stop);
}

std::size_t Reader::n_rows(int prompt, int run) const {
    return Extents(model(), this->prompt(prompt), this->run(prompt, run)).rows();
}

RunRecord Reader::run_record(int prompt, int run) const {
    const Place place = Place::of_run(prompt, run);
    if (const InMemoryRun* added = impl_->added(place)) return added->record();
    RunRecord out;
    static_cast<RunAttributes&>(out) = this->run(prompt, run);
    out.given_label.clear();
    const bool doubles = has(place, schema::run::scores) &&
                         impl_->files->with_data_set(place, schema::run::scores, impl_->stop, [](hid_t open) {
                             return h5::data_set_info(open).element == schema::Type::f64;
                         });
    for_each_run_data_set(out, [&](const schema::DataSet& data_set, auto& values) {
        using T = typename std::remove_reference_t<decltype(values)>::value_type;
        if (&data_set == &schema::run::scores && std::is_same_v<T, double> != doubles) return;
        if (has(place, data_set)) values = read<T>(place, data_set);
    });
    return out;
}

std::vector<std::string> Reader::result_tasks() const {
    std::vector<std::string> out;
    for (const auto& [task, tables] : impl_->files->source().results)
        if (task != schema::root::prompt_results) out.push_back(task);
    return out;
}

bool Reader::has_results(std::string_view task) const {
    return impl_->files->source().results.contains(std::string(task));
}

std::span<const ResultRow> Reader::results(std::string_view task) const& {
    return impl_->files->results(task, impl_->stop);
}

std::vector<ResultRow> Reader::results(std::string_view task) && {
    const auto rows = impl_->files->results(task, impl_->stop);
    return {rows.begin(), rows.end()};
}

std::size_t Reader::n_results(std::string_view task) const { return impl_->files->n_results(task, impl_->stop); }

std::optional<ResultRow> Reader::stored_row(int prompt, int run) const {
    const ResultRow* row = is_in_file(prompt, run) ? impl_->files->stored_row(prompt, run, impl_->stop) : nullptr;
    return row ? std::optional(*row) : std::nullopt;
}

}  // namespace kvscope::trace
