#include "trace/store_records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "trace/hdf5/hdf5.h"
#include "trace/records/record_fields.h"
#include "trace/records/storable_text.h"

namespace kvscope::trace {

namespace {

[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

struct StoreAttribute {
    hid_t object;

    void operator()(const char* name, const std::string& value) const {
        h5::write_attribute(object, name, storable_text(value));
    }
    template <class T>
    void operator()(const char* name, const T& value) const {
        h5::write_attribute(object, name, value);
    }
    template <class T>
    void operator()(const char* name, const std::optional<T>& value) const {
        if (value) (*this)(name, *value);
    }
    void operator()(const char* name, int value) const { (*this)(name, std::int64_t{value}); }
};

std::string expected_shape(const schema::DataSet& data_set, const Extents& extents) {
    std::vector<std::string> out;
    for (int i = 0; i < data_set.rank; ++i) {
        const auto known = extents.of(data_set.dims[static_cast<std::size_t>(i)]);
        out.push_back(known ? std::to_string(*known) : "any");
    }
    return fmt::format("({})", fmt::join(out, ", "));
}

struct CheckShape {
    const Extents& extents;
    std::string_view group;

    template <class T>
    void operator()(const schema::DataSet& data_set, const std::vector<T>& values) const {
        if (values.empty() || !extents.shape(data_set, values.size()).empty()) return;
        refuse(fmt::format("{}/{}: expected the shape {}, found {} elements", group, data_set.path,
                           expected_shape(data_set, extents), values.size()));
    }
};

struct StoreDataSet {
    hid_t group = H5I_INVALID_HID;
    const Extents& extents;
    bool write_empty = false;  ///< whether a required data set is written even if it is empty

    template <class T>
    void operator()(const schema::DataSet& data_set, const std::vector<T>& values) const {
        if (values.empty() && !(write_empty && data_set.need == schema::Need::always)) return;
        std::vector<std::size_t> shape = extents.shape(data_set, values.size());
        if (shape.empty()) shape.assign(static_cast<std::size_t>(data_set.rank), 0);
        h5::write_data_set(group, std::string(data_set.path), std::span<const T>(values), shape);
    }
    void operator()(const schema::DataSet& data_set, const std::vector<std::string>& values) const {
        if (values.empty()) return;
        std::vector<std::string> texts(values.size());
        std::transform(values.begin(), values.end(), texts.begin(), storable_text);
        h5::write_texts(group, std::string(data_set.path), texts);
    }
};

void require_length(std::string_view group, std::string_view name, std::size_t found, std::size_t expected) {
    if (found != expected) refuse(fmt::format("{}/{}: expected {} elements, found {}", group, name, expected, found));
}

/// @param problem empty if there is none
void refuse_problem(std::string_view group, const std::string& problem) {
    if (!problem.empty()) refuse(fmt::format("{}/{}", group, problem));
}

}  // namespace

void store_root(hid_t file, const RootAttributes& root) {
    h5::write_attribute(file, "format", std::string(schema::format));
    h5::write_attribute(file, "version", std::string(schema::version));
    h5::write_attribute(file, "generator", root.generator);
    h5::write_attribute(file, "created_utc", root.created_utc);
    h5::write_attribute(file, "complete", root.complete);
    h5::write_attribute(file, "recipe_json", root.recipe_json);
}

void store_model(hid_t file, const std::string& group, const ModelRecord& record) {
    for (const auto& [name, value] :
         {std::pair("n_layers", record.n_layers), std::pair("n_heads", record.n_heads),
          std::pair("n_kv_heads", record.n_kv_heads), std::pair("head_dim", record.head_dim),
          std::pair("hidden_size", record.hidden_size), std::pair("vocab_size", record.vocab_size)}) {
        if (value <= 0 || value > std::numeric_limits<std::int32_t>::max()) {
            refuse(fmt::format("{}: expected {} above 0, found {}", group, name, value));
        }
    }
    const Extents extents(record);
    for_each_model_data_set(record, CheckShape{extents, group});

    const h5::Handle place = h5::create_group(file, group);
    for_each_model_attribute(record, StoreAttribute{place.get()});
    for_each_model_data_set(record, StoreDataSet{place.get(), extents});
}

void store_prompt(hid_t file, const std::string& group, const PromptRecord& record, const ModelAttributes& model) {
    if (record.n_tokens <= 0 || record.n_tokens > std::numeric_limits<std::int32_t>::max() || record.n_context < 0 ||
        record.n_context > record.n_tokens) {
        refuse(fmt::format("{}: expected 0 <= n_context <= n_tokens and at least one token, found {} and {}", group,
                           record.n_context, record.n_tokens));
    }
    require_length(group, "token_ids", record.token_ids.size(), static_cast<std::size_t>(record.n_tokens));
    require_length(group, "token_text", record.token_text.size(), static_cast<std::size_t>(record.n_tokens));
    const Extents extents(model, record);
    for_each_prompt_data_set(record, CheckShape{extents, group});

    const h5::Handle place = h5::create_group(file, group);
    for_each_prompt_attribute(record, StoreAttribute{place.get()});
    {
        const h5::Handle full = h5::create_group(place.get(), std::string(schema::root::full_group));
        h5::write_attribute(full.get(), std::string(schema::prompt::window_attribute), record.window);
    }
    const StoreDataSet store{place.get(), extents};
    for_each_prompt_data_set(record, [&](const schema::DataSet& data_set, const auto& values) {
        const auto& shared = schema::prompt::shared_data_sets;
        const bool taken_over =
            record.context_of && std::find(std::begin(shared), std::end(shared), &data_set) != std::end(shared);
        if (!taken_over) store(data_set, values);
    });
}

void require_storable_run(const std::string& name, const RunRecord& record, const ModelAttributes& model,
                          const PromptAttributes& prompt, bool shares) {
    Extents extents(model, prompt, record);
    const bool complete = record.status == schema::run::status_complete;
    const bool has_kept = !record.kept_offsets.empty();
    if (!complete && record.status != schema::run::status_failed) {
        refuse(fmt::format("{}: expected the status complete or failed, found \"{}\"", name, record.status));
    }
    if (record.granularity != schema::run::granularity_kv_head &&
        record.granularity != schema::run::granularity_query_head) {
        refuse(
            fmt::format("{}: expected the granularity kv_head or query_head, found \"{}\"", name, record.granularity));
    }
    if (record.mode != schema::run::mode_shared && record.mode != schema::run::mode_isolated) {
        refuse(fmt::format("{}: expected the mode shared or isolated, found \"{}\"", name, record.mode));
    }
    if (!record.scores.empty() && !record.scores_f64.empty()) {
        refuse(fmt::format("{}/scores: expected f32 or f64, found both", name));
    }
    if (complete && !has_kept && !shares) {
        refuse(fmt::format("{}/kept_offsets: expected {} elements, found none", name,
                           *extents.of(schema::Dim::row_offsets)));
    }
    if (has_kept) {
        extents.entries = record.kept_indices.size();
        require_length(name, "kept_offsets", record.kept_offsets.size(), *extents.of(schema::Dim::row_offsets));
        refuse_problem(
            name, problem_of_kept(record.kept_offsets, record.kept_indices, *extents.of(schema::Dim::visible_tokens)));
    }
    if (!record.step_kl.empty() && !record.step_agreement.empty()) extents.steps = record.step_kl.size();
    for_each_run_data_set(record, CheckShape{extents, name});
    if (has_kept)
        refuse_problem(name, problem_of_token_entries(record.kept_offsets, record.merged_token_entry,
                                                      *extents.of(schema::Dim::visible_tokens)));
}

void store_run(hid_t file, const std::string& group, const RunRecord& record, const ModelAttributes& model,
               const PromptAttributes& prompt, bool shares, std::optional<int> scores_of) {
    require_storable_run(group, record, model, prompt, shares);
    const Extents extents(model, prompt, record);
    const bool complete = record.status == schema::run::status_complete;
    const bool has_kept = !record.kept_offsets.empty();

    const h5::Handle place = h5::create_group(file, group);
    for_each_run_attribute(record, StoreAttribute{place.get()});
    StoreAttribute{place.get()}(schema::run::scores_of_attribute.data(), scores_of);
    const StoreDataSet store{place.get(), extents, complete};
    for_each_run_data_set(record, [&](const schema::DataSet& data_set, const auto& values) {
        const auto& shared = schema::run::shared_data_sets;
        const bool taken_over =
            (shares && std::find(std::begin(shared), std::end(shared), &data_set) != std::end(shared)) ||
            (scores_of && &data_set == &schema::run::scores);
        const bool kept = &data_set == &schema::run::kept_offsets || &data_set == &schema::run::kept_indices;
        if (!taken_over && (!kept || has_kept)) store(data_set, values);
    });
}

}  // namespace kvscope::trace
